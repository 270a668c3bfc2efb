"""Settings of an optimizer. The defaults are GPT-3's; LAMB's authors use beta2 0.999, epsilon 1e-6 and decay 0.01.

Source: Brown et al., "Language models are few-shot learners", NeurIPS 2020, appendix B.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote

OptimizerName = Literal["adamw", "lamb"]


@dataclass(frozen=True, kw_only=True)
class OptimizerSpec:
    """Settings of an optimizer. Raises InputError, with all mistakes at once."""

    name: OptimizerName = field(default="adamw", metadata={"help": "adamw or lamb"})
    beta1: float = field(default=0.9, metadata={"help": "decay of the first moment per step"})
    beta2: float = field(default=0.95, metadata={"help": "decay of the second moment per step"})
    epsilon: float = field(default=1e-8, metadata={"help": "added to the root of the second moment"})
    weight_decay: float = field(
        default=0.1, metadata={"help": "fraction of a weight removed per step and unit of learning rate"}
    )
    max_gradient_norm: float = field(
        default=1.0, metadata={"help": "gradients are clipped to this norm over all parameters"}
    )

    def __post_init__(self) -> None:
        rules = (
            ("beta1", 0 <= self.beta1 < 1, "0 or more, below 1"),
            ("beta2", 0 <= self.beta2 < 1, "0 or more, below 1"),
            ("epsilon", self.epsilon > 0, "above 0"),
            ("weight_decay", self.weight_decay >= 0, "0 or more"),
            ("max_gradient_norm", self.max_gradient_norm > 0, "above 0; inf for no clipping"),
        )
        mistakes = [
            Mistake(where=f"optimizer.{name}", found=f"{getattr(self, name):g}", allowed=allowed)
            for name, holds, allowed in rules
            if not holds
        ]
        names = get_args(OptimizerName)
        if self.name not in names:
            mistakes.append(
                Mistake(
                    where="optimizer.name",
                    found=f"unknown optimizer {quote(self.name)}",
                    allowed=", ".join(names),
                    nearest=nearest_name(self.name, names),
                )
            )
        if mistakes:
            raise InputError(*mistakes)
