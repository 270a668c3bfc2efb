"""Settings of data parallelism.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, for the
names of the strategies; Megatron-LM's arguments for that of fusion.
"""

from dataclasses import dataclass, field
from typing import Literal

StrategyName = Literal["ddp", "zero1", "zero2", "zero3"]
GradientPrecision = Literal["model", "float32"]


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
    gradient_precision: GradientPrecision = field(
        default="model",
        metadata={
            "help": "of gradients added over micro-batches and summed over ranks: the model's, or at least float32"
        },
    )
    gradient_accumulation_fusion: bool = field(
        default=True,
        metadata={"help": "whether products for weights' gradients are added to them in place (ddp, zero1)"},
    )
