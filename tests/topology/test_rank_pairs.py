"""Who sends to whom in a job: rings of data and tensor groups, lines of pipeline stages closed by interleaving."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.layout import RANK_AXES, ParallelLayout, RankAxis
from fabrictune.topology.rank_pairs import neighbour_pairs


def test_a_data_ring_has_one_step_a_rank() -> None:
    """MegaScale's 175B job: 12,288 ranks, each sends to the rank 8 further, the last of a ring to its first."""
    layout = ParallelLayout(tp=8, pp=8, dp=192)
    pairs = neighbour_pairs(layout, ("dp",))
    assert len(pairs) == 12_288
    assert pairs.source_E.tolist() == list(range(12_288))
    assert set((pairs.destination_E - pairs.source_E).tolist()) == {8, -191 * 8}


def test_pipeline_stages_send_both_ways() -> None:
    """Four stages in a circle: each sends to two, eight pairs; of two stages each sends to the other."""
    pairs = neighbour_pairs(ParallelLayout(pp=4), ("pp",))
    assert set(zip(pairs.source_E.tolist(), pairs.destination_E.tolist(), strict=True)) == {
        (stage, (stage + step) % 4) for stage in range(4) for step in (1, -1)
    }
    assert len(neighbour_pairs(ParallelLayout(pp=2), ("pp",))) == 2


def test_the_whole_job_is_the_sum_of_its_axes() -> None:
    """12,288 steps of data rings and twice as many between stages."""
    assert len(neighbour_pairs(ParallelLayout(tp=8, pp=8, dp=192), ("dp", "pp"))) == 3 * 12_288


@given(
    tp=st.integers(1, 4),
    cp=st.integers(1, 3),
    dp=st.integers(1, 4),
    pp=st.integers(1, 4),
    axes=st.lists(st.sampled_from(RANK_AXES), unique=True),
)
def test_neighbours_differ_along_one_axis_alone(tp: int, cp: int, dp: int, pp: int, axes: list[RankAxis]) -> None:
    """No rank sends to itself, no pair stands twice, and both ends share all other coordinates."""
    layout = ParallelLayout(tp=tp, cp=cp, dp=dp, pp=pp)
    pairs = neighbour_pairs(layout, axes)
    ends = list(zip(pairs.source_E.tolist(), pairs.destination_E.tolist(), strict=True))
    assert len(set(ends)) == len(ends)
    source, destination = layout.coordinates(pairs.source_E), layout.coordinates(pairs.destination_E)
    differs = {axis: source[axis] != destination[axis] for axis in RANK_AXES}
    assert (np.sum(list(differs.values()), axis=0) == 1).all()
    assert not any(differs[axis].any() for axis in RANK_AXES if axis not in axes)
