"""Stages: counters of all nodes before the measurements and after them, and what rose."""

import time

from fabrictune.fleet.collect.collection import Collection, read_collection, write_collection
from fabrictune.fleet.counters.snapshots import fleet_snapshot
from fabrictune.foundation.checks import CheckReport
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.units import PS_PER_S
from fabrictune.rdma_bench.counters.record import make_counter_record
from fabrictune.validate.cluster.results import StageResult, StageState
from fabrictune.validate.cluster.site import Site

BEFORE, AFTER = "counters-before", "counters-after"


def run_before(site: Site) -> StageResult:
    """Keep the counters as they are before the measurements."""
    collection = site.crew.collect("counters")
    write_collection(collection, site.folder / BEFORE)
    return StageResult(
        name="before", state=_state(collection), reason=_reason(collection), data={"taken_s": time.time()}
    )


def run_counters(site: Site) -> StageResult:
    """Return what rose since then."""
    started = time.perf_counter()
    place = site.folder / BEFORE
    if not (place / "fleet.json").is_file():
        return StageResult(name="counters", state=StageState.SKIPPED, reason="none were kept before the measurements")
    collection = site.crew.collect("counters")
    write_collection(collection, site.folder / AFTER)
    earlier = site.results.get("before")
    elapsed_s = time.time() - float(earlier.data["taken_s"]) if earlier and "taken_s" in earlier.data else 0.0
    try:
        record = make_counter_record(
            fleet_snapshot(read_collection(place).readings),
            fleet_snapshot(collection.readings),
            interval_ps=round(max(0.0, elapsed_s) * PS_PER_S),
            sources=(BEFORE, AFTER),
            started=started,
            rules=site.rules,
        )
    except InputError as error:
        return StageResult(name="counters", state=StageState.INCOMPLETE, reason=error.mistakes[0].found)
    return StageResult(
        name="counters",
        state=_state(collection),
        reason=_reason(collection),
        report=CheckReport(checks=record.checks or (), findings=record.findings),
        notes=tuple(record.run.get("notes", ())),
    )


def _state(collection: Collection) -> StageState:
    return StageState.INCOMPLETE if collection.missing else StageState.DONE


def _reason(collection: Collection) -> str:
    return f"not read: {', '.join(state.name for state in collection.missing)}" if collection.missing else ""
