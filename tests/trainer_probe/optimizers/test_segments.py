"""What a shard holds of each segment, wherever the buffer is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from fabrictune.trainer_probe.optimizers.segments import Segment, Shard  # noqa: E402


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6), num_shards=st.integers(1, 7))
def test_the_shards_hold_every_element_of_every_segment_once(sizes: list[int], num_shards: int) -> None:
    """Elements are numbered; the pieces of all shards, put together by segment, are the segments in order."""
    offsets = [sum(sizes[:number]) for number in range(len(sizes))]
    segments = tuple(
        Segment(name=str(number), offset=offset, size=size, is_replicated_over_tp=False, decays=number % 2 == 0)
        for number, (offset, size) in enumerate(zip(offsets, sizes, strict=True))
    )
    length = -(-sum(sizes) // num_shards)
    flat = torch.arange(length * num_shards)
    found: dict[int, list[int]] = {number: [] for number in range(len(sizes))}
    decaying: list[int] = []
    for first in range(0, len(flat), length):
        part = flat[first : first + length]
        shard = Shard(name="all", segments=segments, first=first, values_E=part, gradients_E=part)
        for number, piece in shard.pieces():
            found[number] += part[piece].tolist()
        for block in (slice(0, length // 2), slice(length // 2, length)):
            runs = list(shard.runs(block))
            assert [element for run, _ in runs for element in part[run].tolist()] == part[block].tolist()
            decaying += [element for run, decays in runs if decays for element in part[run].tolist()]
    expected = {number: list(range(offsets[number], offsets[number] + size)) for number, size in enumerate(sizes)}
    assert found == expected
    assert decaying == [element for number in range(0, len(sizes), 2) for element in expected[number]]
