"""First values that do not depend on the layout."""

import pytest

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.gpt import Block, GptSpec
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.weights import ChunkSpec

SPEC = GptSpec(width=16, depth=4, num_heads=4, vocabulary=32, sequence=8)


@pytest.mark.parametrize("block", ["serial", "parallel"])
def test_the_parts_of_all_ranks_are_the_whole(block: Block) -> None:
    """Parts joined along the split dimension, or any rank's copy where nothing is split."""
    chunk = ChunkSpec(model=GptSpec(width=16, depth=2, num_heads=4, vocabulary=32, sequence=8, block=block))
    whole, parts = make_weights(chunk), [make_weights(chunk, tp=2, place=place) for place in range(2)]
    for weight in chunk.weights():
        found = [part[weight.name] for part in parts]
        assert all(tuple(part.shape) == weight.local_shape(2) for part in found)
        joined = found[0] if weight.split is None else torch.cat(found, weight.split)
        assert torch.equal(joined, whole[weight.name]), weight.name


def test_the_chunks_of_a_pipeline_hold_every_weight_once() -> None:
    """Four chunks of one layer, the first with the embedding and the last with the head."""
    whole = make_weights(ChunkSpec(model=SPEC))
    chunks = [make_weights(ChunkSpec(model=SPEC, number=number, num_chunks=4)) for number in range(4)]
    assert [name for chunk in chunks for name in chunk] == list(whole)
    for chunk in chunks:
        for name, values in chunk.items():
            assert torch.equal(values, whole[name]), name


def test_another_seed_gives_other_values() -> None:
    """And the same seed the same."""
    other = make_weights(ChunkSpec(model=GptSpec(seed=1, width=16, num_heads=4, vocabulary=32, sequence=8)))
    whole = make_weights(ChunkSpec(model=SPEC))
    assert not torch.equal(whole["head.weight"], other["head.weight"])
    assert torch.equal(whole["head.weight"], make_weights(ChunkSpec(model=SPEC))["head.weight"])
