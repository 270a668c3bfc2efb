"""A chunk of a model: layers that follow one another; the first also has the embedding, the last the head."""

from dataclasses import dataclass

from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import WeightSpec, embedding_weights, head_weights, layer_weights


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
        """Whether it takes tokens."""
        return self.number == 0

    @property
    def is_last(self) -> bool:
        """Whether it gives the loss."""
        return self.number == self.num_chunks - 1

    def weights(self) -> list[WeightSpec]:
        """Return its weights in the order in which they are used."""
        return [
            *(embedding_weights(self.model) if self.is_first else ()),
            *(weight for layer in self.layers for weight in layer_weights(self.model, layer)),
            *(head_weights(self.model) if self.is_last else ()),
        ]
