"""Two runs side by side: why one takes longer to a loss than the other.

The time to a loss is the number of steps to it times the time of a step. A difference in steps is the training's; one
in their time is laid to the parts of a step, and what they leave to waits and whatever lies between spans.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.observability.decay.parts import PARTS, StepParts

MORE_STEPS, WAITS = "more steps", "waits and other"
WINDOW = 10  # steps over which a loss is averaged


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A part of the time to the loss, in both runs."""

    part: str
    own_ns: float
    other_ns: float

    @property
    def change_ns(self) -> float:
        """This run's time beyond the other's."""
        return self.own_ns - self.other_ns


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The times of two runs to a loss; without losses, of as many steps as both have."""

    loss: float | None
    own_steps: int
    other_steps: int
    own_ns: float
    other_ns: float
    differences: tuple[Difference, ...]  # that sum to the whole, the largest change first


def compare(own: StepParts, other: StepParts, own_loss_S: FloatArray, other_loss_S: FloatArray) -> Comparison:
    """Return why a run takes longer, or less long, than another; losses may be empty."""
    loss, own_steps, other_steps = _steps_to_loss(own_loss_S, other_loss_S, own, other)
    own_step_ns, other_step_ns = float(np.mean(own.step_ns_S)), float(np.mean(other.step_ns_S))
    steps = min(own_steps, other_steps)  # that both have to make
    found = list(_parts(own, other, steps, own_step_ns, other_step_ns))
    more = Difference(
        part=MORE_STEPS, own_ns=(own_steps - steps) * own_step_ns, other_ns=(other_steps - steps) * other_step_ns
    )
    return Comparison(
        loss=loss,
        own_steps=own_steps,
        other_steps=other_steps,
        own_ns=own_steps * own_step_ns,
        other_ns=other_steps * other_step_ns,
        differences=tuple(sorted([more, *found], key=lambda one: -abs(one.change_ns))),
    )


def _parts(
    own: StepParts, other: StepParts, steps: int, own_step_ns: float, other_step_ns: float
) -> Iterator[Difference]:
    own_left, other_left = own_step_ns, other_step_ns
    for name in PARTS:
        own_ns, other_ns = (float(parts.part_ns[name].max(axis=0).mean()) for parts in (own, other))
        own_left, other_left = own_left - own_ns, other_left - other_ns
        yield Difference(part=name, own_ns=steps * own_ns, other_ns=steps * other_ns)
    yield Difference(part=WAITS, own_ns=steps * own_left, other_ns=steps * other_left)


def _steps_to_loss(
    own_S: FloatArray, other_S: FloatArray, own: StepParts, other: StepParts
) -> tuple[float | None, int, int]:
    """Return the lowest mean loss that both runs reach, and the steps to it."""
    if len(own_S) < WINDOW or len(other_S) < WINDOW:
        steps = min(len(own.steps), len(other.steps))
        return None, steps, steps
    means = [np.convolve(losses, np.ones(WINDOW) / WINDOW, mode="valid") for losses in (own_S, other_S)]
    target = max(mean.min() for mean in means)
    own_steps, other_steps = (int(np.argmax(mean <= target)) + WINDOW for mean in means)
    return float(target), own_steps, other_steps
