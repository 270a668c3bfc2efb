"""Settings of data parallelism.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, for the
names of the strategies.
"""

from dataclasses import dataclass, field
from typing import Literal

StrategyName = Literal["ddp", "zero1", "zero2", "zero3"]


@dataclass(frozen=True, kw_only=True)
class DataParallelSpec:
    """How the ranks of a gradient group divide a model's state."""

    strategy: StrategyName = field(
        default="zero1",
        metadata={
            "help": "what is divided over data-parallel ranks: nothing (ddp), optimizer state (zero1), gradients too "
            "(zero2), values too (zero3)"
        },
    )
