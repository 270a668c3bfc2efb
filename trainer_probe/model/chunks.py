"""Chunks of a model: equal parts of its layers, one for each stage of a pipeline."""

from dataclasses import dataclass

from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import WeightSpec

EMBEDDING = "embedding"  # the block of a model whose values no backward pass needs


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

    def blocks(self) -> dict[str, list[WeightSpec]]:
        """Return the weights of its embedding, its layers and its head, by name in order of use."""
        blocks: dict[str, list[WeightSpec]] = {EMBEDDING: list(self.model.embedding_weights())} if self.is_first else {}
        blocks |= {f"layers.{layer}": list(self.model.layer_weights(layer)) for layer in self.layers}
        return blocks | ({"head": list(self.model.head_weights())} if self.is_last else {})

    def weights(self) -> list[WeightSpec]:
        """Return its weights in order of use."""
        return [weight for weights in self.blocks().values() for weight in weights]
