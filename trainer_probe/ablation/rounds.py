"""Rungs trained in turn, round after round, by the same processes: what else the machine does disturbs all alike.

A turn is a whole small training: weights made, a loader started, steps run. Its first step is not counted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from fabrictune.trainer_probe.driver.local import Line, work_here
from fabrictune.trainer_probe.driver.reports import StepReport
from fabrictune.trainer_probe.launcher.processes import Arrays
from fabrictune.trainer_probe.recipes.schema import Recipe

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.driver.input_pipeline import Machine

NUM_UNCOUNTED = 1  # steps that begin a turn


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of a rung in a round."""

    round: int
    rung: str
    report: StepReport


def run_rounds(
    recipes: Mapping[str, Recipe],
    *,
    num_rounds: int,
    num_steps: int,
    tell: Callable[[Turn], None],
    timeout_s: float,
    peak_flops_per_s: float | None = None,
) -> list[Turn]:
    """Return the counted steps of all rungs, `num_steps` a turn; `tell` is called with each. Ctrl-C ends it early.

    The recipes have one layout. Raises what `train_here` does.
    """
    turns: list[Turn] = []

    def take(turn: Turn) -> None:
        if turn.report.step >= NUM_UNCOUNTED:
            turns.append(turn)
            tell(turn)

    counted = {name: replace(recipe, num_steps=NUM_UNCOUNTED + num_steps) for name, recipe in recipes.items()}
    first = next(iter(counted.values()))
    work_here(first, partial(_take_turns, counted, num_rounds, peak_flops_per_s), take, timeout_s=timeout_s)
    return turns


def _take_turns(
    recipes: Mapping[str, Recipe],
    num_rounds: int,
    peak_flops_per_s: float | None,
    member: "Member",
    machine: "Machine",
    line: Line[Turn],
) -> Arrays:
    """Run in the rank's own process."""
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.driver.loop import Watch, train

    for number in range(num_rounds):
        for place, (name, recipe) in enumerate(recipes.items()):

            def tell(report: StepReport, number: int = number, name: str = name) -> None:
                line.send(Turn(round=number, rung=name, report=report))

            comm = Comm(recipe.degrees.layout, member)
            loader = replace(machine, job=f"{machine.job}-{number}-{place}")  # each turn has one of its own
            watch = Watch(tell=tell, is_stopped=line.is_stopped, peak_flops_per_s=peak_flops_per_s)
            if train(recipe, comm, loader, watch):
                return {}
    return {}
