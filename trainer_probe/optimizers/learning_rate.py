"""The learning rate of each step: a linear warm-up, then a decay.

Source: Vaswani et al., "Attention is all you need", NeurIPS 2017, section 5.3 (warm-up, inverse square root);
Loshchilov and Hutter, "SGDR", ICLR 2017, equation 5 without restarts (cosine).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote

DECAYS: Mapping[
    str, Callable[[float], float]
] = {  # completed fraction of the decay -> fraction of the peak, before the floor
    "constant": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: (1.0 + math.cos(math.pi * done)) / 2,
}
INVERSE_SQUARE_ROOT = "inverse-square-root"  # has no end, so it depends on steps and not on a fraction
_NAMES = (*DECAYS, INVERSE_SQUARE_ROOT)


@dataclass(frozen=True, kw_only=True)
class LearningRateSchedule:
    """A learning rate over a training of `num_steps`. Raises InputError, with all mistakes at once."""

    peak: float = field(default=3e-4, metadata={"help": "highest learning rate"})
    num_steps: int = field(
        default=1000, metadata={"help": "steps of the whole training; later steps keep the last rate"}
    )
    num_warmup_steps: int = field(default=0, metadata={"help": "steps of linear warm-up to the peak"})
    decay: str = field(default="cosine", metadata={"help": ", ".join(_NAMES)})
    floor_fraction: float = field(default=0.1, metadata={"help": "fraction of the peak at the end of the decay"})

    def __post_init__(self) -> None:
        rules = (
            ("peak", self.peak > 0, "above 0", ""),
            ("num_steps", self.num_steps >= 1, "1 or more", ""),
            ("num_warmup_steps", 0 <= self.num_warmup_steps <= self.num_steps, f"0 to {self.num_steps}, all steps", ""),
            ("decay", self.decay in _NAMES, ", ".join(_NAMES), nearest_name(self.decay, _NAMES)),
            ("floor_fraction", 0 <= self.floor_fraction <= 1, "0 to 1", ""),
        )
        mistakes = [
            Mistake(where=f"schedule.{name}", found=quote(str(getattr(self, name))), allowed=allowed, nearest=nearest)
            for name, holds, allowed, nearest in rules
            if not holds
        ]
        if mistakes:
            raise InputError(*mistakes)

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step, counted from 0; the first after the warm-up has the peak."""
        if step < self.num_warmup_steps:
            return self.peak * (step + 1) / (self.num_warmup_steps + 1)
        since = step - self.num_warmup_steps
        if self.decay == INVERSE_SQUARE_ROOT:
            scale = self.num_warmup_steps + 1
            share = math.sqrt(scale / (scale + since))
            return self.peak * max(self.floor_fraction, share)
        share = DECAYS[self.decay](min(1.0, since / max(1, self.num_steps - 1 - self.num_warmup_steps)))
        return self.peak * (self.floor_fraction + (1 - self.floor_fraction) * share)
