"""Initial values that do not depend on the layout."""

import tracemalloc

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from fabrictune.foundation.seeds import stream_key
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import Block, GptSpec
from fabrictune.trainer_probe.model.initialization import make_weight, make_weights, write_initial_values
from fabrictune.trainer_probe.model.weights import WeightSpec
from tests.trainer_probe.model.slow_normals import single, slow_normals

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


def test_weights_are_the_slow_numbers_in_their_order() -> None:
    """Each weight's own stream, the number of an element its place in the whole weight, times the deviation."""
    weights = make_weights(ChunkSpec(model=SPEC))
    for weight in ChunkSpec(model=SPEC).weights():
        if weight.start == "normal":
            key = stream_key(SPEC.seed, "weights", weight.name)
            numbers = slow_normals(key, weights[weight.name].numel())
            expected = [single(number * single(weight.scale)) for number in numbers]
            assert weights[weight.name].flatten().tolist() == expected, weight.name


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("split", [None, 0, 1, 2])
def test_any_range_of_a_part_is_that_of_the_whole_part(split: int | None, dtype: torch.dtype) -> None:
    """From each place of three: ranges within a row of the split, over many rows, and to the end."""
    weight = WeightSpec(name="w", shape=(3, 6, 9), split=split, start="normal", scale=0.02)
    for place in range(3):
        part = make_weight(weight, 7, tp=3, place=place).flatten()
        for first, stop in ((0, 1), (2, 5), (1, len(part)), (len(part) - 1, len(part)), (5, 5)):
            values = torch.empty(stop - first, dtype=dtype)
            write_initial_values(values, weight, 7, tp=3, place=place, first=first)
            assert torch.equal(values, part[first:stop].to(dtype))


def test_threads_draw_what_one_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight of a million elements and a rest, by threads and in ranges that are drawn without."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(5))
    weight = WeightSpec(name="w", shape=(2**10 + 1, 2**10 + 1), split=None, start="normal", scale=0.02)
    by_threads = torch.empty(weight.shape, dtype=torch.bfloat16).view(-1)
    write_initial_values(by_threads, weight, 7)
    alone = torch.empty_like(by_threads)
    for first in range(0, len(alone), 2**19):
        write_initial_values(alone[first : first + 2**19], weight, 7, first=first)
    assert torch.equal(by_threads, alone)


def test_a_weight_takes_no_memory_but_its_own() -> None:
    """16 million elements in 64 MB: temporaries are those of a chunk a thread, of which there are eight at most."""
    weight = WeightSpec(name="w", shape=(4096, 8192), split=1, start="normal", scale=0.02)
    values = torch.empty(4096 * 4096)
    tracemalloc.start()
    write_initial_values(values, weight, 0, tp=2, place=1)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4 * 2**20
    assert np.isclose(values.std().item(), 0.02, rtol=1e-3)
