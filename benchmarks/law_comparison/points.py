"""Points of the comparison: run one, keep it, and find it again.

A point is written beside its place and renamed into it, so that there is a whole one or none.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.law_comparison.contenders import CONTENDERS
from benchmarks.law_comparison.steps import write_step
from fabrictune.foundation.metrics.transfers import parts_of
from fabrictune.scenario.expectations import Measure
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.studies.simulation import simulate

QUESTIONS = Path(__file__).parent / "questions"
NEEDS_STEP, STEP = "training-step-256", "step.parquet"  # the question, and the traffic that its scenario names
FIGURES = tuple(
    Measure(metric=name)
    for name in (
        "makespan",
        "completion_time.mean",
        "throughput.mean",
        "slowdown.p50",
        "slowdown.p99",
        "pauses",
        "paused_time",
        "queue.max",
        "ecn_marks",
        "drops",
    )
)
FIGURES_OF_VICTIMS = tuple(
    Measure(metric=name, part="bystanders") for name in ("throughput.mean", "slowdown.p50", "slowdown.p99")
)

Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One law on one question under one seed."""

    question: str
    contender: str
    seed: int

    def path(self, folder: Path) -> Path:
        """Return where it is kept."""
        return folder / f"{self.question}--{self.contender}--{self.seed}.json"


def question_names() -> list[str]:
    """Return the questions there are."""
    return sorted(path.stem for path in QUESTIONS.glob("*.yaml"))


def all_points(questions: Sequence[str], contenders: Sequence[str], num_seeds: int) -> list[Point]:
    """Return the points seed by seed, so that a run that is stopped leaves whole pairs."""
    return [
        Point(question=question, contender=contender, seed=seed)
        for question in questions
        for seed in range(num_seeds)
        for contender in contenders
    ]


def run_missing(points: Sequence[Point], folder: Path, tell: Callable[[str], None], *, num_workers: int = 1) -> None:
    """Run the points that are not kept yet, and keep each as it finishes; the engine lets threads run side by side."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [point for point in points if not point.path(folder).exists()]
    tell(f"{len(points) - len(missing)} of {len(points)} points are kept")
    if any(point.question == NEEDS_STEP for point in missing):
        write_step(folder / STEP)
        shutil.copy(QUESTIONS / f"{NEEDS_STEP}.yaml", folder)
    with ThreadPoolExecutor(num_workers) as pool:
        running = {pool.submit(_run_and_keep, point, folder): point for point in missing}
        try:
            for number, done in enumerate(as_completed(running), start=1):
                done.result()
                point = running[done]
                tell(f"{number} of {len(missing)}: {point.question}, {point.contender}, seed {point.seed}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # those that run are kept when they are done
            raise


def _run_and_keep(point: Point, folder: Path) -> None:
    half = point.path(folder).with_suffix(".half")
    half.write_text(json.dumps(run_point(point, folder)))
    half.rename(point.path(folder))


def run_point(point: Point, folder: Path) -> Figures:
    """Return the figures of one run; a training step finds a copy of its scenario, and its traffic, in `folder`."""
    path = (folder if point.question == NEEDS_STEP else QUESTIONS) / f"{point.question}.yaml"
    changes = {**CONTENDERS[point.contender], "seed": point.seed, "routing.seed": point.seed}
    record = simulate(override(load_scenario(path), changes, origin=f"contender {point.contender}"))
    measures = (*FIGURES, *FIGURES_OF_VICTIMS) if parts_of(record) else FIGURES
    return {measure.name: measure.value(record) for measure in measures}


def kept(points: Sequence[Point], folder: Path) -> Iterator[tuple[Point, Figures]]:
    """Return the points that have been run, with their figures."""
    for point in points:
        if point.path(folder).exists():
            yield point, json.loads(point.path(folder).read_text())
