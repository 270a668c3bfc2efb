"""Dynamic loss scaling, which keeps the small gradients of half precision from vanishing.

Only float16 needs it: bfloat16 has the exponents of single precision. The scale is halved when a gradient is not
finite, and the step is skipped; it doubles after a long run of finite gradients.

Source: Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.2; constants of torch.amp.GradScaler.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch


@dataclass(frozen=True, kw_only=True)
class LossScale:
    """The factor of the loss, and the number of steps with finite gradients since it changed."""

    value: float = 2.0**16
    num_good_steps: int = 0
    growth_interval: int = 2000  # steps with finite gradients after which the scale doubles

    @classmethod
    def of(cls, dtype: torch.dtype) -> Self | None:
        """Return the initial scale of a precision, or None where none is needed."""
        return cls() if dtype == torch.float16 else None

    def after(self, *, is_finite: bool) -> Self:
        """Return the scale after a step whose gradient norm was finite or not."""
        if not is_finite:
            return replace(self, value=max(1.0, self.value / 2), num_good_steps=0)
        if self.num_good_steps + 1 == self.growth_interval:
            return replace(self, value=self.value * 2, num_good_steps=0)
        return replace(self, num_good_steps=self.num_good_steps + 1)
