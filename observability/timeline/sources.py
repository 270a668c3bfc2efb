"""Sources of timelines: the spans of a run, a measured communication trace, or the record of a simulated run.

Of a training's folder the spans are shown where it has them, for they have the passes; else its communication trace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.collectives.traces.formats import read_trace
from fabrictune.foundation.errors import InputError, Mistake, TraceError
from fabrictune.foundation.record_folders import HEAD
from fabrictune.foundation.records import RunRecord, installed_version
from fabrictune.foundation.run_tables.simulation import SIMULATED
from fabrictune.foundation.span_reader import find_spans, read_spans
from fabrictune.observability.timeline.activity import Activity, activity_of_spans, activity_of_trace
from fabrictune.observability.timeline.clocks import align
from fabrictune.observability.timeline.job import StepSeries, job_timeline
from fabrictune.observability.timeline.simulation import TABLES, simulation_timeline
from fabrictune.observability.timeline.timeline import Fact, Timeline

TRACE = "comm_trace.parquet"
ALLOWED = f"a record of `train run` or `sim run`, or a folder with spans/ or {TRACE}"
SIMULATE = (
    "name the plan's job_trace.parquet in a scenario (`traffic: {workload: comm_trace, file: ..., layout: ...}`), "
    "simulate that with `fabrictune sim run`, and show its record"
)
_WITHOUT_TIMES = {  # what records of requests to come have, and how to get times
    "train plan": ("a plan, whose requests have no times", SIMULATE),
    "validate predict": (
        "a prediction, which has the parts of a step and no requests",
        f"plan the recipe with `fabrictune train plan`; {SIMULATE}",
    ),
}
_SERIES = (
    ("MFU", "mfu_fraction", "%", 100.0),
    ("tokens/s", "tokens_per_s", "tokens/s", 1.0),
    ("loss", "loss", "", 1.0),
)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What of a job is shown; all where nothing is said."""

    steps: tuple[int, int] | None = None  # first and last
    ranks: tuple[int, ...] | None = None
    precision_ns: int | None = None  # that clocks must have


def read_timeline(paths: Sequence[Path], selection: Selection) -> Timeline:
    """Return the timeline of a run's folder, or of the files of a trace; raises InputError."""
    source, is_folder = paths[0], paths[0].is_dir()
    if is_folder and len(paths) > 1:
        raise InputError(
            Mistake(where=str(paths[1]), found="a second source", allowed="one folder, or files of a trace")
        )
    record = RunRecord.read(source, tables={*TABLES, "training"}) if (source / HEAD).is_file() else None
    facts: dict[str, Fact] = {
        "source": str(source),
        "fabrictune": installed_version("fabrictune"),
        **_described(record),
    }
    if record is not None and record.kind in SIMULATED:
        if selection != Selection():
            found = "steps, ranks or a precision of a simulated run"
            raise InputError(Mistake(where=str(source), found=found, allowed="them of spans and communication traces"))
        return simulation_timeline(record, facts=facts)
    if is_folder and _has_spans(source):
        activity = activity_of_spans(read_spans(source))
    else:
        activity = _read_trace([_trace_of(source, record)] if is_folder else paths)
        facts["hosts"] = "not in the trace: its ranks are taken to have one clock"
    aligned, clocks = align(
        _selected(activity, selection, str(source)), precision_ns=selection.precision_ns, where=str(source)
    )
    return job_timeline(aligned, clocks, facts=facts, series=_series(record))


def _read_trace(paths: Sequence[Path]) -> Activity:
    """Return the activity of a trace whose requests were timed; raises TraceError."""
    activity = activity_of_trace(read_trace(paths, num_ranks=None, group_size=None))
    if not len(activity.requests):
        raise TraceError(
            Mistake(
                where=str(paths[0]),
                found="no request with a time",
                allowed="a trace that was measured, such as the record of `fabrictune train run`",
                next_step=f"of a plan: {SIMULATE}",
            )
        )
    return activity


def _trace_of(folder: Path, record: RunRecord | None) -> Path:
    """Return the communication trace of a folder; raises InputError where it has none."""
    if not (folder / TRACE).is_file():
        if record is not None and record.kind in _WITHOUT_TIMES:
            found, next_step = _WITHOUT_TIMES[record.kind]
            raise InputError(Mistake(where=str(folder), found=found, allowed=ALLOWED, next_step=next_step))
        raise InputError(
            Mistake(
                where=str(folder),
                found="neither spans, nor a communication trace, nor a simulated run",
                allowed=ALLOWED,
            )
        )
    return folder / TRACE


def _has_spans(folder: Path) -> bool:
    try:
        find_spans(folder)
    except TraceError:
        return False
    return True


def _selected(activity: Activity, selection: Selection, where: str) -> Activity:
    """Return the steps and ranks asked for; raises InputError where there are none."""
    selected = activity
    if selection.steps is not None:
        selected = selected.of_steps(*selection.steps)
    if selection.ranks is not None:
        selected = selected.of_ranks(selection.ranks)
    if not len(selected.ranks):
        steps = activity.requests.step_Q
        allowed = f"steps {steps.min()} to {steps.max()} of ranks {activity.ranks.min()} to {activity.ranks.max()}"
        raise InputError(Mistake(where=where, found="nothing in these steps and ranks", allowed=allowed))
    return selected


def _described(record: RunRecord | None) -> dict[str, Fact]:
    """Return what a record says of itself: kind, name, seed."""
    if record is None:
        return {}
    values = {"record": record.kind, "name": record.run.get("name"), "seed": record.run.get("seed")}
    return {name: value for name, value in values.items() if isinstance(value, str | int)}


def _series(record: RunRecord | None) -> tuple[StepSeries, ...]:
    """Return the numbers of each step that a training's record has; negative ones are not known."""
    if record is None or "training" not in record.tables:
        return ()
    table = record.table("training")
    steps = table.column("step").to_pylist()
    series = []
    for name, column, unit, factor in _SERIES:
        values = zip(steps, table.column(column).to_pylist(), strict=True)
        known = {step: factor * value for step, value in values if value is not None and value >= 0}
        if known:
            series.append(StepSeries(name=name, unit=unit, value_of_step=known))
    return tuple(series)
