"""The 3D-parallel layout of a job: how ranks fall into tensor, data and pipeline groups.

Ranks are numbered with the axes in `order`, fastest first. MegaScale numbers tensor, then data, then pipeline parallel,
so that a tensor group is one server and a data-parallel ring stays among neighbours.

Source: MegaScale (NSDI'24), sections 2 and 3.6.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake

Axis = Literal["tp", "dp", "pp"]
AXES: tuple[Axis, ...] = get_args(Axis)


@dataclass(frozen=True, kw_only=True)
class ParallelLayout:
    """Degrees of tensor (tp), data (dp) and pipeline (pp) parallelism, and the order of rank numbers."""

    tp: int = field(default=1, metadata={"help": "tensor-parallel degree"})
    dp: int = field(default=1, metadata={"help": "data-parallel degree"})
    pp: int = field(default=1, metadata={"help": "pipeline-parallel degree"})
    order: tuple[Axis, ...] = field(
        default=("tp", "dp", "pp"), metadata={"help": "of the axes in rank numbers, fastest first"}
    )

    def __post_init__(self) -> None:
        for axis in AXES:
            if self.degree(axis) < 1:
                raise InputError(
                    Mistake(where=f"layout.{axis}", found=f"degree {self.degree(axis)}", allowed="1 or more")
                )
        if sorted(self.order) != sorted(AXES):
            raise InputError(
                Mistake(
                    where="layout.order",
                    found=f"order {self.order}",
                    allowed="each of tp, dp, pp once, fastest first",
                )
            )

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.tp * self.dp * self.pp

    def degree(self, axis: Axis) -> int:
        """Return the degree of one axis."""
        degree: int = getattr(self, axis)
        return degree

    def coordinates(self, rank: int | IntArray) -> dict[Axis, IntArray]:
        """Return the position of each rank on every axis; arrays in, arrays out."""
        rest = np.asarray(rank, dtype=np.int64)
        assert ((rest >= 0) & (rest < self.world_size)).all(), "rank outside the layout"
        places: dict[Axis, IntArray] = {}
        for axis in self.order:
            rest, places[axis] = np.divmod(rest, self.degree(axis))
        return places

    def rank(self, *, tp: int, dp: int, pp: int) -> int:
        """Return the rank at a position."""
        position: dict[Axis, int] = {"tp": tp, "dp": dp, "pp": pp}
        result, stride = 0, 1
        for axis in self.order:
            assert 0 <= position[axis] < self.degree(axis), "position outside the layout"
            result += position[axis] * stride
            stride *= self.degree(axis)
        return result

    def groups(self, axis: Axis) -> IntArray:
        """Return the groups of one axis, shape (groups, degree), members in order, groups by their first rank."""
        grid = np.arange(self.world_size).reshape([self.degree(a) for a in reversed(self.order)])
        dimension = len(self.order) - 1 - self.order.index(axis)
        groups = np.moveaxis(grid, dimension, -1).reshape(-1, self.degree(axis))
        return groups[np.argsort(groups[:, 0])]

    def group_of(self, axis: Axis, rank: int) -> Sequence[int]:
        """Return the ranks that share every other coordinate with `rank`, in order along `axis`."""
        groups = self.groups(axis)
        row = int(np.nonzero((groups == rank).any(axis=1))[0][0])
        return [int(member) for member in groups[row]]
