"""Chunks of a model: equal parts of its layers, one for each stage of a pipeline."""

from dataclasses import dataclass

from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import WeightSpec


@dataclass(frozen=True, kw_only=True)
class ChunkSpec:
    """Part `number` of `num_chunks` equal parts of a model's layers."""

    model: ModelSpec
    number: int = 0
    num_chunks: int = 1

    @property
    def layers(self) -> range:
        """The numbers of its layers."""
        depth = self.model.depth // self.num_chunks
        return range(self.number * depth, (self.number + 1) * depth)

    @property
    def is_first(self) -> bool:
        """Whether its input is tokens."""
        return self.number == 0

    @property
    def is_last(self) -> bool:
        """Whether its output is the loss."""
        return self.number == self.num_chunks - 1

    def weights(self) -> list[WeightSpec]:
        """Return its weights in order of use."""
        return [
            *(self.model.embedding_weights() if self.is_first else ()),
            *(weight for layer in self.layers for weight in self.model.layer_weights(layer)),
            *(self.model.head_weights() if self.is_last else ()),
        ]
