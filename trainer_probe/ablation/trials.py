"""Trials: every ablation step trained once a round, by the same processes, so that other load disturbs all alike.

A trial is a whole small training: weights initialized, a loader started, training steps run. Its first step is a
warm-up.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from fabrictune.trainer_probe.launcher.processes import Arrays
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.input_pipeline import Machine
from fabrictune.trainer_probe.training.local import run_locally
from fabrictune.trainer_probe.training.progress import Channel, Monitor, StepReport

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

NUM_WARMUPS = 1  # first training steps of a trial, not counted


@dataclass(frozen=True, kw_only=True)
class TrialStep:
    """One training step of a trial."""

    round: int
    technique: str  # name of the ablation step
    report: StepReport


def run_trials(
    recipes: Mapping[str, Recipe],
    *,
    num_rounds: int,
    num_steps: int,
    on_step: Callable[[TrialStep], None],
    timeout_s: float,
    peak_flops_per_s: float | None = None,
) -> list[TrialStep]:
    """Return the counted training steps of all trials, `num_steps` each; Ctrl-C ends the trials early.

    Calls `on_step` after each of them. The recipes, by technique, have one layout. Raises the errors of
    `train_locally`.
    """
    steps: list[TrialStep] = []

    def on_message(step: TrialStep) -> None:
        if step.report.step >= recipes[step.technique].first_step + NUM_WARMUPS:
            steps.append(step)
            on_step(step)

    short = {name: replace(recipe, num_steps=NUM_WARMUPS + num_steps) for name, recipe in recipes.items()}
    work = partial(_run_rank, short, num_rounds, peak_flops_per_s)
    run_locally(next(iter(short.values())), work, on_message, timeout_s=timeout_s)
    return steps


def _run_rank(
    recipes: Mapping[str, Recipe],
    num_rounds: int,
    peak_flops_per_s: float | None,
    member: "Member",
    machine: Machine,
    channel: Channel[TrialStep],
) -> Arrays:
    """Run all trials in a rank's own process."""
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.training.hardware import device_of
    from fabrictune.trainer_probe.training.loop import train

    for number in range(num_rounds):
        for place, (name, recipe) in enumerate(recipes.items()):

            def on_step(report: StepReport, number: int = number, name: str = name) -> None:
                channel.send(TrialStep(round=number, technique=name, report=report))

            comm = Comm(recipe.degrees.layout, member)
            own_loader = replace(machine, job=f"{machine.job}-{number}-{place}")  # one for each trial
            monitor = Monitor(on_step=on_step, is_stopped=channel.is_stopped, peak_flops_per_s=peak_flops_per_s)
            if train(recipe, comm, own_loader, monitor, device_of(recipe)):
                return {}
    return {}
