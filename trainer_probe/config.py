"""What is trained and how: the settings of the model and of its training."""

from dataclasses import dataclass, field
from typing import Literal

from foundation.errors import InputError, Mistake

Policy = Literal["none", "overlap"]


@dataclass(frozen=True, kw_only=True)
class PerceptronSpec:
    """A stack of equal square layers."""

    width: int = field(default=256, metadata={"help": "inputs and outputs of a layer"})
    depth: int = field(default=4, metadata={"help": "number of layers"})
    seed: int = field(default=0, metadata={"help": "seed of the first weights"})

    def __post_init__(self) -> None:
        _check_positive(self, "width", "depth")

    @property
    def num_parameters(self) -> int:
        """Weights and biases of every layer."""
        return self.depth * (self.width * self.width + self.width)


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """Data-parallel training of a model on seeded data."""

    model: PerceptronSpec = field(default_factory=PerceptronSpec)
    batch_size: int = field(default=32, metadata={"help": "rows of the whole batch, over all ranks"})
    learning_rate: float = field(default=0.1, metadata={"help": "step of gradient descent"})
    bucket_bytes: int = field(default=2**20, metadata={"help": "most gradients reduced in one request"})
    policy: Policy = field(default="none", metadata={"help": "reduce after the backward pass, or overlap with it"})
    seed: int = field(default=0, metadata={"help": "seed of the data"})

    def __post_init__(self) -> None:
        _check_positive(self, "batch_size", "bucket_bytes")


def _check_positive(spec: PerceptronSpec | TrainingSpec, *names: str) -> None:
    mistakes = [
        Mistake(where=name, found=str(getattr(spec, name)), allowed="1 or more")
        for name in names
        if getattr(spec, name) < 1
    ]
    if mistakes:
        raise InputError(*mistakes)
