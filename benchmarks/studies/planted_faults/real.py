"""Trials of real jobs: several trainings of one job of processes, one after another, each with its fault or none.

The parent stops and starts processes while a training runs, and asks `diagnose` of a rank that is stopped for good.
What the spans show is asked when the job has ended. Ranks communicate over the backend that executes requests in
NCCL's order.
"""

import os
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numpy as np

from benchmarks.studies.planted_faults.commands import HANG, hang_of, stragglers_of
from benchmarks.studies.planted_faults.disturbances import (
    Disturbance,
    Starving,
    Turns,
    groups_of,
    loader_of,
    page_of,
    stop_at_request,
)
from benchmarks.studies.planted_faults.rank_work import Event, Training, jump_of, train_all
from benchmarks.studies.planted_faults.trials import CLEAN, Name, Result, Trial, Truth
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.span_writer import spans_beside
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.launcher.relay import relay
from fabrictune.trainer_probe.operation.run_pages import remove_run_pages, run_pages
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.input_pipeline import make_batches

BATCH = 10  # trainings of one job
LAYOUTS = {8: ParallelLayout(dp=4, pp=2), 16: ParallelLayout(tp=2, dp=4, pp=2)}
AXES: dict[int, tuple[Axis, ...]] = {8: ("dp", "pp"), 16: ("tp", "dp", "pp")}
NUM_STEPS, NUM_STARVED = 9, 20
MODEL = {"width": 16, "depth": 2, "num_heads": 2, "vocabulary": 258, "sequence": 16}
TIMEOUT_S = 3600.0
PERIOD_S = 0.16  # of a rank that is stopped by turns


@dataclass(kw_only=True)
class _Plan:
    """A trial, its training, and what the parent does while it runs."""

    trial: Trial
    training: Training
    truth: Truth | None
    begin: Callable[[], Callable[[], None]] | None = None  # starts what disturbs, and returns what ends it
    names: tuple[Name, ...] = ()  # of what was asked while it ran
    answer_s: float = 0.0
    ends: list[Callable[[], None]] = field(default_factory=list)


def try_real(trials: Sequence[Trial], seed: int, folder: Path) -> list[Result]:
    """Return the results of the trials, all of one size, in one job; what each left lies in a folder of its name."""
    plans = [_plan(trial, np.random.default_rng(trial.seed(seed)), folder / trial.name) for trial in trials]
    recipe = plans[0].training.recipe
    queue = SimpleQueue[Event | None]()
    conductor = Thread(target=_conduct, args=(plans, queue), daemon=True)
    conductor.start()
    with relay(queue.put) as sender:
        batches = make_batches(recipe, folder)
        trainings = tuple(plan.training for plan in plans)
        target = partial(train_all, trainings, Path(batches.spec.path), uuid.uuid4().hex, sender)
        try:
            launch(
                recipe.degrees.layout,
                target,
                timeout_s=TIMEOUT_S,
                startup_timeout_s=TIMEOUT_S,
                request_timeout_s=TIMEOUT_S,
                backend="ordered",
            )
        finally:
            queue.put(None)
            conductor.join()
            for plan in plans:
                remove_run_pages(run_pages(spans_beside(plan.training.run)))
    return [_result(plan) for plan in plans]


def _conduct(plans: Sequence[_Plan], queue: "SimpleQueue[Event | None]") -> None:
    """Begin and end each training's disturbance when rank 0 says so."""
    current = -1
    while (event := queue.get()) is not None:
        place, step = event
        plan = plans[place]
        if place > current:
            current = place
            if plan.begin is not None:
                plan.ends.append(plan.begin())
        if step >= plan.training.recipe.num_steps:
            _end(plan)
    for plan in plans:
        _end(plan)


def _end(plan: _Plan) -> None:
    while plan.ends:
        plan.ends.pop()()


def _result(plan: _Plan) -> Result:
    names, answer_s = plan.names, plan.answer_s
    if plan.trial.kind != HANG:
        began_s = time.perf_counter()
        names += stragglers_of(plan.training.run, plan.training.run.with_name("record"))
        answer_s += time.perf_counter() - began_s
    return Result(trial=plan.trial, truth=plan.truth, names=names, answer_s=answer_s)


def _plan(trial: Trial, random: np.random.Generator, folder: Path) -> _Plan:
    folder.mkdir()
    run, size = folder / "run", trial.size
    rank = int(random.integers(size))
    place = ((str(rank),),)
    own_loaders = trial.kind == "loader starvation"
    plan = partial(_Plan, trial=trial)
    training = partial(Training, recipe=_recipe(size, own_loaders=own_loaders), run=run)
    page = run_pages(spans_beside(run)) / f"{rank}"
    match trial.kind:
        case "slow rank":
            stopped_s = float(random.uniform(0.03, 0.06))
            turns = partial(Turns, lambda: _pid_of(page), stopped_s=stopped_s, running_s=PERIOD_S - stopped_s)
            return plan(training=training(), truth=Truth(cause="slow work", places=place), begin=_starting(turns))
        case "loader starvation":
            starve = partial(Starving, lambda: _loader_of(page), page, still_s=float(random.uniform(1.6, 2.6)))
            return plan(training=training(), truth=Truth(cause="data loading", places=place), begin=_starting(starve))
        case "clock offset":
            truth = Truth(cause="wrong clock", places=place)
            return plan(training=training(clock=(rank, jump_of(random))), truth=truth)
        case "garbage collection":
            ranks = [int(rank) for _ in range(NUM_STEPS) for rank in random.permutation(size)][:NUM_STEPS]
            objects = int(random.uniform(0.8e6, 1.5e6))
            truth = Truth(cause="garbage collection", places=((),))
            return plan(training=training(collections=ranks, num_objects=objects), truth=truth)
        case "hang":
            found = plan(training=training(), truth=Truth(cause=HANG, places=place))
            axis = AXES[size][int(random.integers(len(AXES[size])))]
            found.begin = _asking(partial(_hang, found, page, axis, int(random.integers(1, NUM_STEPS - 3))))
            return found
        case _:
            assert trial.kind == CLEAN
            found = plan(training=training(), truth=None)
            found.begin = _asking(partial(_ask_clean, found, page))
            return found


def _recipe(size: int, *, own_loaders: bool) -> Recipe:
    layout = LAYOUTS[size]
    changes: dict[str, object] = {
        "model": MODEL,
        "degrees": {
            "layout": {axis: layout.degree(axis) for axis in layout.rank_axes},
            "virtual": 1,
            "num_batches": 4,
            "batch_size": 1,
        },
        "num_steps": NUM_STARVED if own_loaders else NUM_STEPS,
        "schedule": {"num_steps": NUM_STARVED},
        "loader": "worker" if own_loaders else "machine",
    }
    return load_recipe(find_recipe("tiny"), changes)


def _starting(make: Callable[[], Disturbance]) -> Callable[[], Callable[[], None]]:
    def begin() -> Callable[[], None]:
        thread = make()
        thread.start()
        return thread.end

    return begin


def _asking(ask: Callable[[], None]) -> Callable[[], Callable[[], None]]:
    def begin() -> Callable[[], None]:
        thread = Thread(target=ask, daemon=True)
        thread.start()
        return thread.join

    return begin


def _hang(plan: _Plan, page: Path, axis: Axis, step: int) -> None:
    """Stop a rank for good at a request of an axis, and ask who hangs; the rank goes on afterwards."""
    layout = plan.training.recipe.degrees.layout
    pid = stop_at_request(page, groups_of(layout, axis), step)
    began_s = time.perf_counter()
    try:
        plan.names = hang_of(plan.training.run, plan.training.run.with_name("record"), is_apart=True)
        plan.answer_s = time.perf_counter() - began_s
    finally:
        os.kill(pid, signal.SIGCONT)


def _ask_clean(plan: _Plan, page: Path) -> None:
    """Ask who hangs in a job in which nobody does, once it takes steps."""
    while (now := page_of(page)) is None or now.step < 1:
        time.sleep(0.05)
    began_s = time.perf_counter()
    plan.names = hang_of(plan.training.run, plan.training.run.with_name("hang-record"))
    plan.answer_s = time.perf_counter() - began_s


def _pid_of(page: Path) -> int | None:
    found = page_of(page)
    return None if found is None else found.pid


def _loader_of(page: Path) -> int | None:
    pid = _pid_of(page)
    return None if pid is None else loader_of(pid)
