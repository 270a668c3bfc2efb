"""What a rank of a real job does: one paced training after another, each with its trial's fault where it is its own.

Passes also wait for a fixed time, in small pieces, as a host waits for its GPU (`planted_stragglers/paced.py`), so that
many ranks share few cores. Every training has a communication, spans and a page of its own, as one of `train run` has.
"""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.studies.planted_stragglers.paced import PacedPasses
from fabrictune.foundation.span_writer import spans_beside
from fabrictune.trainer_probe.operation.run_pages import create_run_page, run_pages
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.input_pipeline import Machine
from fabrictune.trainer_probe.training.progress import StepReport

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.launcher.processes import Arrays
    from fabrictune.trainer_probe.parallel.passes import Passes
    from fabrictune.trainer_probe.training.hooks import Hook, Run

Event = tuple[int, int]  # a training's place among those of the job, and the number of its next step
JUMP_STEP = 1  # from which on a clock is wrong


@dataclass(frozen=True, kw_only=True)
class Training:
    """One training of a job, and the faults in it that ranks plant themselves."""

    recipe: Recipe
    run: Path  # of its record, beside which its spans are
    clock: tuple[int, int] | None = None  # a rank, and by how many ns its clock jumps
    collections: Sequence[int] = ()  # the rank that collects garbage in each step
    num_objects: int = 0  # that it then looks at


def train_all(
    trainings: Sequence[Training],
    tokens: Path,
    job: str,
    sender: "Connection[Event | None, Event | None]",
    member: "Member",
) -> "Arrays":
    """Do the trainings on this rank; rank 0 sends an event before each one, and after each step."""
    for place, training in enumerate(trainings):

        def send(step: int, place: int = place) -> None:
            if member.rank == 0:
                sender.send((place, step))

        machine = Machine(ranks=tuple(range(member.plan.world_size)), tokens=tokens, job=f"{job}-{place}")
        _train(training, machine, member, send)
    return {}


def _train(training: Training, machine: Machine, member: "Member", send: Any) -> None:
    from fabrictune.trainer_probe.clocks import HostClock
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.operation.watched import WatchedLedger, page_hook
    from fabrictune.trainer_probe.training.hardware import device_of
    from fabrictune.trainer_probe.training.hooks import Hook
    from fabrictune.trainer_probe.training.loop import train
    from fabrictune.trainer_probe.training.progress import Monitor

    layout, spans = training.recipe.degrees.layout, spans_beside(training.run)
    page = create_run_page(run_pages(spans), member.rank, layout)
    assert page is not None, "there is room for a page"
    clock = _JumpingClock()
    comm = Comm(layout, member, WatchedLedger(member.rank, layout.axis_groups(), HostClock(clock.read_ns), page))
    hooks = [Hook(passes_of=PacedPasses), page_hook(page), *_faults(training, clock, member.rank)]

    def on_step(report: StepReport) -> None:
        send(report.step + 1)

    send(0)
    monitor = Monitor(on_step=on_step, is_stopped=lambda: False)
    train(training.recipe, comm, machine, monitor, device_of(training.recipe), hooks=hooks, spans=spans)


def _faults(training: Training, clock: "_JumpingClock", rank: int) -> "list[Hook]":
    from fabrictune.trainer_probe.training.hooks import Hook

    hooks: list[Hook] = []
    if training.clock is not None and training.clock[0] == rank:
        jump_ns = training.clock[1]

        def jump(run: "Run", step: int) -> None:
            clock.ahead_ns = jump_ns if step >= JUMP_STEP else 0

        hooks.append(Hook(before_step=jump))
    if rank in training.collections:
        collector = _Collector(training, rank)
        hooks.append(Hook(before_step=collector.begin, passes_of=collector.passes_of))
    return hooks


class _JumpingClock:
    """The machine's clock, ahead by a time that can be set after the ranks have compared theirs."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def read_ns(self) -> int:
        """Return this moment."""
        return time.perf_counter_ns() + self.ahead_ns


class _Collector:
    """Collections of garbage of a rank's own, in the first backward pass of its steps."""

    def __init__(self, training: Training, rank: int) -> None:
        self._training, self._rank = training, rank
        self._objects: list[list[int]] = []
        self._is_due = False

    def begin(self, run: "Run", step: int) -> None:
        if not self._objects:  # after the collection that leaves what is alive out of later ones
            self._objects = [[number] for number in range(self._training.num_objects)]
        self._is_due = self._training.collections[step] == self._rank

    def passes_of(self, passes: "Passes") -> "Passes":
        return _CollectingPasses(passes, self)

    def collect_if_due(self) -> None:
        """Collect once in a step that is this rank's."""
        if self._is_due:
            self._is_due = False
            gc.collect()


class _CollectingPasses:
    """Passes whose first backward one of a step collects garbage, if it is due."""

    def __init__(self, passes: "Passes", collector: _Collector) -> None:
        self._passes, self._collector = passes, collector
        self.forward, self.weight_gradients = passes.forward, passes.weight_gradients

    def backward(self, *arguments: Any) -> Any:
        self._collector.collect_if_due()
        return self._passes.backward(*arguments)


def jump_of(random: np.random.Generator) -> int:
    """Return by how much a clock jumps: 20 to 100 ms, ahead or behind."""
    return int(random.choice([-1, 1]) * random.uniform(20e6, 100e6))
