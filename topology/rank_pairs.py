"""Pairs of ranks of a 3D-parallel job between which flows run.

Tensor and data groups pass data around a ring, each rank to the next of its group. Pipeline stages send activations to
the next stage and gradients to the one before; the last and the first are neighbours too, as they are where a schedule
interleaves several model chunks a stage.

Source: MegaScale (NSDI'24), section 2 (ring collectives of the data-parallel axis, interleaved 1F1B).

Shapes: E pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.layout import Axis, ParallelLayout


@dataclass(frozen=True, kw_only=True)
class RankPairs:
    """E ordered pairs of ranks, each once."""

    source_E: IntArray
    destination_E: IntArray

    def __len__(self) -> int:
        return len(self.source_E)


def neighbour_pairs(layout: ParallelLayout, axes: Sequence[Axis]) -> RankPairs:
    """Return the pairs of every group of the axes, ordered by the ranks that send; none where a degree is 1."""
    pairs = [np.zeros((0, 2), np.int64)]
    for axis in axes:
        groups = layout.groups(axis)
        if groups.shape[1] > 1:
            pairs.append(np.stack([groups, np.roll(groups, -1, axis=1)], axis=-1).reshape(-1, 2))
            if axis == "pp":
                pairs.append(pairs[-1][:, ::-1])
    pair_E2 = np.unique(np.concatenate(pairs), axis=0)
    return RankPairs(source_E=pair_E2[:, 0], destination_E=pair_E2[:, 1])
