"""A sweep from its file to its record: probe the keys, run what the search proposes, keep every run, sum up."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run, notes_of
from fabrictune.scenario.files import load_scenario
from fabrictune.sweeps.effect_check import probe_points, refuse_keys_without_effect
from fabrictune.sweeps.executors import Executor
from fabrictune.sweeps.laws import laws_of
from fabrictune.sweeps.points import Point, PointMaker, Task
from fabrictune.sweeps.results import Measured, result_report, result_tables
from fabrictune.sweeps.schema import Sweep
from fabrictune.sweeps.search import AxisValues, key_of_values, num_points, start_search
from fabrictune.sweeps.store import SweepFolder

SUMMED_UP = ("metrics", "result", "failure", "notes", "law")  # of a run's head


def run_sweep(
    sweep: Sweep,
    folder: SweepFolder,
    executor: Executor,
    *,
    trust_code: bool = False,
    progress: Progress | None = None,
) -> RunRecord:
    """Return the sweep's record, running only what the folder has not; every run is kept in it as soon as it is done.

    Raises InputError for what cannot be swept, RecordError where nothing more can be kept, UnavailableError where this
    machine cannot run a point. After any of these, and after Ctrl-C, the same call goes on from there.
    """
    started = time.perf_counter()
    total = num_points(sweep) * sweep.seeds
    search = start_search(sweep)
    maker = PointMaker(sweep, load_scenario(sweep.scenario, trust_code=trust_code), trust_code=trust_code)
    runs = _Runs(folder, executor, total, progress)
    if sweep.probe:
        _probe(sweep, maker, runs)
    measured: dict[str, Measured] = {}
    batch: list[AxisValues] | None = next(search)
    while batch is not None:
        keys = [key_of_values(values) for values in batch]
        new = {key: values for key, values in zip(keys, batch, strict=True) if key not in measured}
        measured |= _measure([maker.make(values) for values in new.values()], runs)
        batch = _send(search, [measured[key].costs(sweep) for key in keys])
    results = list(measured.values())
    _refuse_if_all_failed(results)
    report = result_report(sweep, results)
    return RunRecord(
        kind="sim sweep",
        run={**describe_run(seed=sweep.seed, started=started), **_describe(sweep, results)},
        tables=result_tables(sweep, results),
        findings=report.findings,
        checks=report.checks,
    )


def run_points(
    points: Sequence[Point], folder: SweepFolder, executor: Executor, *, progress: Progress | None = None
) -> list[Measured]:
    """Return the results of points wherever they lie, running only what the folder has not, as `run_sweep` does."""
    runs = _Runs(folder, executor, max(1, sum(len(point.tasks) for point in points)), progress)
    measured = _measure(points, runs)
    _refuse_if_all_failed(list(measured.values()))
    return [measured[key_of_values(point.values)] for point in points]


class _Runs:
    """The runs of a sweep: those that are there, and those that have to be done."""

    def __init__(self, folder: SweepFolder, executor: Executor, total: int, progress: Progress | None) -> None:
        self._folder = folder
        self._executor = executor
        self._total = total
        self._progress = progress
        self._done: dict[str, RunRecord] = {}

    def get(self, tasks: Iterable[Task]) -> list[RunRecord]:
        """Return the record of each task, running those that are not there."""
        requested = list(tasks)
        missing = {task.id: task for task in requested if task.id not in self._done and not self._read(task)}
        self._executor.run(list(missing.values()), self._take)
        return [self._done[task.id] for task in requested]

    def _read(self, task: Task) -> bool:
        record = self._folder.find(task)
        if record is not None:
            self._done[task.id] = _summed_up(record)
            self._tell()
        return record is not None

    def _take(self, task: Task, record: RunRecord) -> None:
        self._folder.keep(task, record)
        self._done[task.id] = _summed_up(record)
        self._tell()

    def _tell(self) -> None:
        if self._progress:
            self._progress(min(len(self._done) / self._total, 1.0), f"{len(self._done)} of {self._total} runs")


def _summed_up(record: RunRecord) -> RunRecord:
    """Return what of a run stays in memory; the whole is on disk."""
    head = {key: record.run[key] for key in SUMMED_UP if key in record.run}
    if law := head.get("law"):
        head["law"] = {key: value for key, value in law.items() if key != "source"}
    return RunRecord(kind=record.kind, run=head)


def _measure(points: Sequence[Point], runs: _Runs) -> dict[str, Measured]:
    records = iter(runs.get(task for point in points for task in point.tasks))
    return {
        key_of_values(point.values): Measured(point=point, runs=tuple(next(records) for _ in point.tasks))
        for point in points
    }


def _send(search: Any, costs: Sequence[Any]) -> list[AxisValues] | None:
    """Return a search's next batch, None after its last."""
    try:
        batch: list[AxisValues] = search.send(costs)
    except StopIteration:
        return None
    return batch


def _probe(sweep: Sweep, maker: PointMaker, runs: _Runs) -> None:
    """Run each of the points that show what the keys do, with one seed."""
    measured = _measure([replace(point, tasks=point.tasks[:1]) for point in probe_points(sweep, maker)], runs)

    def result(values: AxisValues) -> str | None:
        point = measured[key_of_values(values)]
        return None if point.failure else str(point.runs[0].run["result"])

    refuse_keys_without_effect(sweep, result)


def _refuse_if_all_failed(measured: Sequence[Measured]) -> None:
    """Raise what the first point failed of, if none went well."""
    if all(result.failure for result in measured):
        raise InputError(
            Mistake(
                where=f"all {len(measured)} points",
                found=measured[0].failure,
                next_step="run the scenario alone, then sweep keys of it",
            )
        )


def _describe(sweep: Sweep, measured: Sequence[Measured]) -> dict[str, Any]:
    """Return the head of the sweep's record; `point_ids` leads from each row of table `points` to its runs."""
    notes = list(dict.fromkeys(note for result in measured for run in result.runs for note in notes_of(run)))
    return {
        **({"notes": notes} if notes else {}),
        "name": sweep.name,
        "question": sweep.question,
        "search": sweep.search.name,
        "num_seeds": sweep.seeds,
        "objectives": {
            objective.name: "maximise" if objective.is_maximised else "minimise" for objective in sweep.objectives
        },
        "laws": laws_of(measured),
        "point_ids": [[task.id for task in result.point.tasks] for result in measured],
    }
