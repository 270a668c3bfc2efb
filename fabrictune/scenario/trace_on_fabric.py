"""Scenario of a trace on a fabric that nobody has written: defaults for all else, each of them an assumption."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.collectives.traces.formats import find_job, read_trace
from fabrictune.foundation.errors import Mistake, RecordError, TraceError
from fabrictune.foundation.layout import RANK_AXES, ParallelLayout
from fabrictune.foundation.record_folders import HEAD
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.overrides import override_texts
from fabrictune.scenario.schema import Scenario

TRACE_FILES = ("comm_trace.parquet", "job_trace.parquet")  # of a training run, of a plan
PLACE = Path("trace-on-fabric")  # what mistakes name in place of a file


@dataclass(frozen=True, kw_only=True)
class TraceOnFabric:
    """A scenario, and what it assumes of a run that only names a trace and a fabric."""

    scenario: Scenario
    assumptions: tuple[str, ...]


def trace_on_fabric(trace: Path, fabric: Path, changes: Sequence[str] = ()) -> TraceOnFabric:
    """Return the scenario that replays a trace, or that of a record, on a fabric, with `changes` such as `law=swift`.

    Raises InputError.
    """
    file, layout, source = _traced_job(trace)
    degrees = {axis: getattr(layout, axis) for axis in (*RANK_AXES, "ep") if getattr(layout, axis) > 1} or {"dp": 1}
    settings = {
        "name": f"{_plain(trace)}-on-{_plain(fabric)}",
        "question": f"How long is a step of {trace.name} on {fabric.name}?",
        "fabric": {"file": str(fabric)},
        "traffic": {
            "workload": "comm_trace",
            "file": str(file),
            "layout": {**degrees, "order": list(layout.order)},
        },
    }
    scenario = override_texts(parse_scenario(json.dumps(settings, indent=1), PLACE), changes, origin="--set")
    spec: Any = scenario.traffic.spec
    expansion = spec.expansion
    return TraceOnFabric(
        scenario=scenario,
        assumptions=(
            f"layout {layout.describe()}, {source}",
            f"placement {spec.placement}: ranks in order over the hosts, one GPU for each of a host's NICs",
            f"law {scenario.law.name}, and the engine's default switches and NICs",
            f"algorithm {expansion.algorithm}, {expansion.qps_per_connection} queue pair a connection, "
            f"hash {scenario.routing.function}",
        ),
    )


def _plain(path: Path) -> str:
    """Return a path's name without its endings, as part of a folder's name."""
    return path.resolve().name.split(".")[0] or "trace"


def _traced_job(trace: Path) -> tuple[Path, ParallelLayout, str]:
    """Return the file or folder of a trace, the layout of its ranks, and where that is from."""
    if (trace / HEAD).is_file():
        return _traced_job_of_record(trace)
    if job := find_job([trace]):
        return trace, job.layout, "as planned"
    num_ranks = 1 + max((max(group, default=-1) for group in read_trace([trace]).groups), default=-1)
    return trace, ParallelLayout(dp=max(num_ranks, 1)), "since the trace names none"


def _traced_job_of_record(folder: Path) -> tuple[Path, ParallelLayout, str]:
    files = [folder / name for name in TRACE_FILES if (folder / name).is_file()]
    if not files:
        raise TraceError(
            Mistake(
                where=str(folder),
                found=f"a record of {RunRecord.read(folder).kind!r} without a communication trace",
                allowed="one of train run or train plan, or a trace",
            )
        )
    if job := find_job(files[:1]):
        return files[0], job.layout, "as planned"
    settings = RunRecord.read(folder).run.get("configuration", {})
    degrees = {name: settings.get(f"degrees.layout.{name}", 1) for name in (*RANK_AXES, "ep")}
    order = settings.get("degrees.layout.order", ParallelLayout().order)
    if not all(isinstance(degree, int) for degree in degrees.values()) or not isinstance(order, list | tuple):
        raise RecordError(Mistake(where=str(folder), found="no degrees of parallelism in run.json"))
    return files[0], ParallelLayout(**degrees, order=tuple(order)), "as in the record"
