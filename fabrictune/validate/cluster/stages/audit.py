"""Stages of the fleet: settings that disagree, cabling against the plan, and the ladder of timeouts.

All three look at one collection, which the audit makes and keeps in the validation's folder.
"""

import math
import time

from fabrictune.fleet.audit.record import audit_record
from fabrictune.fleet.collect.collection import Collection, read_collection, write_collection
from fabrictune.fleet.facts.derived import fleet_facts
from fabrictune.fleet.facts.links import lldp_neighbours
from fabrictune.fleet.timeouts.ladder import build_ladder, find_disorders
from fabrictune.foundation.checks import CheckReport, run_check
from fabrictune.foundation.finding_rules.cluster import MISCABLED, TIMEOUT_ORDER
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.units import PS_PER_S, format_duration
from fabrictune.rdma_bench.timers.profile_files import find_profile
from fabrictune.rdma_bench.timers.profiles import DEFAULT_PROFILE
from fabrictune.topology.fabric import Fabric
from fabrictune.validate.cluster.results import Measurement, StageResult, StageState
from fabrictune.validate.cluster.site import Site

COLLECTION = "collection"


def run_audit(site: Site) -> StageResult:
    """Collect the settings of all nodes, and return what the audit finds in them."""
    started = time.perf_counter()
    collection = site.crew.collect("settings")
    write_collection(collection, site.folder / COLLECTION)
    record, changes = audit_record(collection, tuple(site.audit_rules), sources=site.crew.names, started=started)
    missing = collection.missing
    notes = list(record.run["notes"])
    if changes:
        notes.append(f"changes proposed: {len(changes)}; fabrictune fleet audit --from-files {COLLECTION} prints them")
    return StageResult(
        name="audit",
        state=StageState.INCOMPLETE if missing else StageState.DONE,
        reason=f"not read: {', '.join(state.name for state in missing)}" if missing else "",
        report=CheckReport(checks=record.checks or (), findings=record.findings),
        notes=notes,
    )


def run_cabling(site: Site) -> StageResult:
    """Return what LLDP hears against the planned fabric."""
    if site.fabric is None:
        return _skipped("cabling", "no planned fabric (--fabric FILE)")
    readings = _collection(site).readings
    heard = [(reading, list(lldp_neighbours(reading))) for reading in readings]
    silent = [reading.name for reading, neighbours in heard if not neighbours]
    if len(silent) == len(heard):
        return _skipped("cabling", "no node hears a neighbour by LLDP (lldpd, `lldpctl -f json0`)")
    plan = _planned_neighbours(site.fabric)
    findings, num_right, num_unplanned = [], 0, 0
    for reading, neighbours in heard:
        for one in neighbours:
            near, far = (_key(reading.name, one.local_port), _key(one.chassis.name, one.port))
            if near not in plan:
                num_unplanned += 1
            elif plan[near] == far:
                num_right += 1
            else:
                findings.append(_miscabled(near, far, plan[near], one.where))
    subject = f"{num_right + len(findings):,} ports that hear a neighbour, of {len(plan):,} planned"
    notes = [f"ports that hear a neighbour and are not planned: {num_unplanned}"] if num_unplanned else []
    notes += [f"nodes that hear nobody: {', '.join(silent)}"] if silent else []
    return StageResult(
        name="cabling",
        state=StageState.DONE,
        report=run_check(MISCABLED.id, subject, findings, expected="the neighbour that was planned"),
        notes=notes,
    )


def run_timers(site: Site) -> StageResult:
    """Return the ladder of timeouts of what was collected."""
    facts = fleet_facts(_collection(site).readings)
    profile = find_profile(DEFAULT_PROFILE, where="timers")
    rungs = build_ladder(facts, profile)
    if not any(rung.where for rung in rungs):
        return _skipped("timers", "nodes without RDMA devices, Slurm or switch settings: every timeout is a default")
    report = run_check(
        TIMEOUT_ORDER.id,
        f"{len(rungs)} timeouts",
        (
            TIMEOUT_ORDER.finding(
                entity=one.longer.layer,
                actual=f"{_duration(one.longer.time_s)}, shorter than {one.shorter.layer}",
                expected=f"longer than {_duration(one.shorter.time_s)}, {one.reason}",
                confidence=Confidence.CONFIGURED,
                evidence=tuple(filter(None, (one.longer.where, one.shorter.where))),
            )
            for one in find_disorders(rungs)
        ),
        expected="each longer than what it has to wait for",
    )
    return StageResult(
        name="timers",
        state=StageState.DONE,
        measurements=[
            Measurement(
                part="ladder",
                subject=rung.layer,
                unit="s",
                measured=rung.time_s if math.isfinite(rung.time_s) else -1.0,
                detail=rung.where or f"assumed: {rung.assumed}",
            )
            for rung in rungs
        ],
        report=report,
        notes=(f"adapter: {DEFAULT_PROFILE}, assumed; `rdma timers measure` has yours",),
    )


def _collection(site: Site) -> Collection:
    """Return what the audit has collected; collects where it did not run."""
    place = site.folder / COLLECTION
    if not (place / "fleet.json").is_file():
        write_collection(site.crew.collect("settings"), place)
    return read_collection(place)


def _planned_neighbours(fabric: Fabric) -> dict[tuple[str, str], tuple[str, str]]:
    names = [
        _key(fabric.node_name_N[fabric.port_node_P[port]], fabric.port_name_P[port]) for port in range(fabric.num_ports)
    ]
    return {name: names[int(fabric.port_peer_P[port])] for port, name in enumerate(names)}


def _key(node: str, port: str) -> tuple[str, str]:
    return node.split(".")[0].lower(), port


def _miscabled(near: tuple[str, str], far: tuple[str, str], planned: tuple[str, str], where: str) -> Finding:
    return MISCABLED.finding(
        entity=":".join(near),
        actual=f"hears {':'.join(far)}",
        expected=f"{':'.join(planned)}, as planned",
        confidence=Confidence.MEASURED,
        evidence=(where,),
    )


def _duration(time_s: float) -> str:
    return format_duration(time_s * PS_PER_S) if math.isfinite(time_s) else "never"


def _skipped(name: str, reason: str) -> StageResult:
    return StageResult(name=name, state=StageState.SKIPPED, reason=reason)
