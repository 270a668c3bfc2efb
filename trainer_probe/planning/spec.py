"""What a plan needs to know: the model, how it is divided, and how fast a GPU multiplies."""

from dataclasses import dataclass, field
from typing import Literal

from trainer_probe.model.spec import ModelSpec
from trainer_probe.parallel.degrees import Degrees

Dtype = Literal["bfloat16", "float32", "float64"]
ELEMENT_BYTES: dict[Dtype, int] = {"bfloat16": 2, "float32": 4, "float64": 8}


@dataclass(frozen=True, kw_only=True)
class PlanSpec:
    """A training job to be planned."""

    model: ModelSpec
    degrees: Degrees = field(default_factory=Degrees)
    policy: str = "all"
    dtype: Dtype = "bfloat16"
    flops_per_s: float = 267.9e12  # a GPU's, on products alone

    @property
    def element_bytes(self) -> int:
        """Bytes of a weight or an activation."""
        return ELEMENT_BYTES[self.dtype]
