"""The ring's division: every pair of tokens that meets is in one tile, and all ranks have as many."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.parallel.ring_attention import RingContext, chunks_of, ring_pairs
from fabrictune.trainer_probe.planning.dry_run import join_alone

CPU = torch.device("cpu")


def make_ring(size: int, rank: int) -> RingContext:
    layout = ParallelLayout(cp=size)
    with join_alone(layout, rank) as member:
        return RingContext(Comm(layout, member), POLICIES["all"])


def met(ring: RingContext, source: int, num_tokens: int, window: int | None) -> torch.Tensor:
    """Return how often each pair of this rank's queries and a source's keys meets in the tiles, Q K."""
    times_QK = torch.zeros(num_tokens, num_tokens, dtype=torch.int64)
    for tile in ring.tiles(source, num_tokens, window, CPU):
        part_QK = torch.ones_like(times_QK[tile.queries, tile.keys])
        if tile.is_causal:
            part_QK = part_QK.tril()
        if tile.hidden_QK is not None:
            part_QK = part_QK.masked_fill(tile.hidden_QK, 0)
        times_QK[tile.queries, tile.keys] += part_QK
    return times_QK


@settings(max_examples=40)
@given(size=st.integers(2, 5), chunk=st.integers(1, 4), data=st.data())
def test_each_pair_that_meets_is_in_one_tile(size: int, chunk: int, data: st.DataObject) -> None:
    """Of all places: keys up to a query's own, and in a window the latest alone."""
    window = data.draw(st.one_of(st.none(), st.integers(1, 2 * size * chunk)))
    ring = make_ring(size, data.draw(st.integers(0, size - 1)))
    whole = torch.arange(2 * size * chunk)
    for source in range(size):
        other = torch.cat([whole.chunk(2 * size)[number] for number in chunks_of(source, size)])
        distance_QK = ring.take(whole, 0)[:, None] - other
        expected_QK = (distance_QK >= 0) & (distance_QK < (window or len(whole)))
        assert torch.equal(met(ring, source, 2 * chunk, window), expected_QK.long())


@pytest.mark.parametrize("size", [2, 3, 8])
def test_all_ranks_multiply_as_much(size: int) -> None:
    """Own tokens in a square, half a square with each other rank: (C + 1) / 2 squares of two chunks of one token."""
    for rank in range(size):
        ring = make_ring(size, rank)
        areas = [
            len(range(2)[tile.queries]) * len(range(2)[tile.keys])
            for source in range(size)
            for tile in ring.tiles(source, 2, None, CPU)
        ]
        assert sum(areas) == 4 * (size + 1) // 2


def test_the_chunks_of_all_ranks_are_the_sequence() -> None:
    """Number i from the front and number i from the back, of eight."""
    assert [chunks_of(place, 4) for place in range(4)] == [(0, 7), (1, 6), (2, 5), (3, 4)]
    assert make_ring(4, 1).take(torch.arange(16), 0).tolist() == [2, 3, 12, 13]
    assert make_ring(2, 1).take(torch.arange(8).view(1, 8), 1).tolist() == [[2, 3, 4, 5]]


def test_each_rank_sends_to_the_next() -> None:
    """Round the group; one rank has nobody to send to."""
    assert ring_pairs(3) == {(0, 1), (1, 2), (2, 0)}
    assert ring_pairs(1) == set()
