"""Settings of the software on a cluster, as far as a training's recipe does not say them."""

from dataclasses import dataclass, field
from typing import Literal

from fabrictune.hardware.checks import above_zero, raise_for

Kernel = Literal["", "unfused", "flash1", "flash2", "flash3"]


@dataclass(frozen=True, kw_only=True)
class SoftwareSpec:
    """Kernels of a training system. Raises InputError."""

    attention: Kernel = field(
        default="", metadata={"help": "kernel of attention; without it the newest that the GPU has rates of"}
    )
    chunks: Literal["apart", "fused"] = field(
        default="apart",
        metadata={
            "help": "products that are cut to overlap with collectives: chunks as kernels of their own, whose rows are "
            "copied, or as one kernel"
        },
    )
    work_factor: float = field(default=1.0, metadata={"help": "factor on the time of all operations"})

    def __post_init__(self) -> None:
        raise_for(above_zero(self))
