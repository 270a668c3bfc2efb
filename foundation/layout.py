"""The parallel layout of a job: how ranks fall into tensor, context, data, pipeline and expert groups.

Ranks are numbered with the axes in `order`, fastest first. MegaScale numbers tensor, then data, then pipeline parallel,
so that a tensor group is one server and a data-parallel ring stays among neighbours; Megatron Core puts context
parallel behind tensor parallel. Expert parallelism has no place in rank numbers: it divides the data-parallel axis.

Groups along an axis of rank numbers have that axis' name: tp, cp, dp, pp. Others are joint or divided:

- `ep`: neighbours along dp, as many as the expert-parallel degree, which divide the experts;
- `edp`: the ranks that hold the same experts, along dp and cp;
- `dp_cp`: the ranks that hold the same dense weights, along dp and cp.

Source: MegaScale (NSDI'24), sections 2 and 3.6; Megatron Core, `parallel_state` (order tp-cp-ep-dp-pp, and the groups'
names).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake

RankAxis = Literal["tp", "cp", "dp", "pp"]  # of rank numbers
Axis = Literal[RankAxis, "ep", "edp", "dp_cp"]  # along which there are groups
RANK_AXES: tuple[RankAxis, ...] = get_args(RankAxis)
AXES: tuple[Axis, ...] = get_args(Axis)

Groups = tuple[tuple[int, ...], ...]  # the ranks of each

_DIGITS: Mapping[Axis, tuple[str, ...]] = {  # of rank numbers in which a group's members differ; dp is edp and ep
    "tp": ("tp",),
    "cp": ("cp",),
    "dp": ("edp", "ep"),
    "pp": ("pp",),
    "ep": ("ep",),
    "edp": ("edp", "cp"),
    "dp_cp": ("edp", "ep", "cp"),
}


@dataclass(frozen=True, kw_only=True)
class ParallelLayout:
    """Degrees of tensor (tp), context (cp), data (dp), pipeline (pp) and expert (ep) parallelism, and the rank order.

    An order without cp has it behind tp. Raises InputError.
    """

    tp: int = field(default=1, metadata={"help": "tensor-parallel degree"})
    cp: int = field(default=1, metadata={"help": "context-parallel degree"})
    dp: int = field(default=1, metadata={"help": "data-parallel degree"})
    pp: int = field(default=1, metadata={"help": "pipeline-parallel degree"})
    ep: int = field(default=1, metadata={"help": "expert-parallel degree, a divisor of dp"})
    order: tuple[RankAxis, ...] = field(
        default=("tp", "dp", "pp"), metadata={"help": "of the axes in rank numbers, fastest first; cp follows tp"}
    )

    def __post_init__(self) -> None:
        for axis in (*RANK_AXES, "ep"):
            degree = getattr(self, axis)
            if degree < 1:
                raise InputError(Mistake(where=f"layout.{axis}", found=f"degree {degree}", allowed="1 or more"))
        if self.dp % self.ep:
            raise InputError(
                Mistake(where="layout.ep", found=f"degree {self.ep}", allowed=f"a divisor of dp {self.dp}")
            )
        if sorted(self.rank_order) != sorted(RANK_AXES):
            raise InputError(
                Mistake(
                    where="layout.order",
                    found=f"order {self.order}",
                    allowed="each of tp, dp, pp once, fastest first, and cp where it does not follow tp",
                )
            )

    @property
    def rank_order(self) -> tuple[RankAxis, ...]:
        """All axes of rank numbers, fastest first."""
        if "cp" in self.order or "tp" not in self.order:
            return self.order
        behind_tp = self.order.index("tp") + 1
        return *self.order[:behind_tp], "cp", *self.order[behind_tp:]

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def rank_axes(self) -> tuple[RankAxis, ...]:
        """The axes of rank numbers that a job of this layout has groups of: tp, dp and pp, and cp where it is used."""
        return tuple(axis for axis in RANK_AXES if axis != "cp" or self.cp > 1)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes that a job of this layout has groups of."""
        of_experts: tuple[Axis, ...] = ("ep", "edp") if self.ep > 1 else ()
        joint: tuple[Axis, ...] = ("dp_cp",) if self.cp > 1 else ()
        return *self.rank_axes, *of_experts, *joint

    @property
    def replica_axis(self) -> Axis:
        """The axis along which ranks hold the same dense weights, and sum their gradients."""
        return "dp_cp" if self.cp > 1 else "dp"

    @property
    def expert_replica_axis(self) -> Axis:
        """The axis along which ranks hold the same experts, and sum their gradients."""
        return "edp" if self.ep > 1 else self.replica_axis

    def degree(self, axis: Axis) -> int:
        """Return the degree of one axis: the size of its groups."""
        sizes = self._sizes
        return int(np.prod([sizes[digit] for digit in _DIGITS[axis]], dtype=np.int64))

    def describe(self) -> str:
        """Return the degrees as text: `tp 8, dp 192, pp 8`, and cp and ep where they are used."""
        shown = [*self.rank_axes, *(("ep",) if self.ep > 1 else ())]
        return ", ".join(f"{axis} {getattr(self, axis)}" for axis in shown)

    def describe_product(self) -> str:
        """Return the factors of the number of ranks as text: `tp 8 times dp 192 times pp 8`."""
        return " times ".join(f"{axis} {getattr(self, axis)}" for axis in self.rank_axes)

    def coordinates(self, rank: int | IntArray) -> dict[RankAxis, IntArray]:
        """Return the position of each rank on every axis of rank numbers; arrays in, arrays out."""
        rest = np.asarray(rank, dtype=np.int64)
        assert ((rest >= 0) & (rest < self.world_size)).all(), "rank outside the layout"
        places: dict[RankAxis, IntArray] = {}
        for axis in self.rank_order:
            rest, places[axis] = np.divmod(rest, self.degree(axis))
        return places

    def rank(self, *, tp: int, dp: int, pp: int, cp: int = 0) -> int:
        """Return the rank at a position."""
        position: dict[RankAxis, int] = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
        result, stride = 0, 1
        for axis in self.rank_order:
            assert 0 <= position[axis] < self.degree(axis), "position outside the layout"
            result += position[axis] * stride
            stride *= self.degree(axis)
        return result

    def groups(self, axis: Axis) -> IntArray:
        """Return the groups of one axis, shape (groups, degree), members in order, groups by their first rank."""
        digits = [digit for name in reversed(self.rank_order) for digit in _DIGITS[name]]  # slowest first
        grid = np.arange(self.world_size).reshape([self._sizes[digit] for digit in digits])
        along = [number for number, digit in enumerate(digits) if digit in _DIGITS[axis]]
        groups = np.moveaxis(grid, along, range(-len(along), 0)).reshape(-1, self.degree(axis))
        return groups[np.argsort(groups[:, 0])]

    def group_of(self, axis: Axis, rank: int) -> Sequence[int]:
        """Return the ranks of a rank's group along an axis, in order."""
        groups = self.groups(axis)
        row = int(np.nonzero((groups == rank).any(axis=1))[0][0])
        return [int(member) for member in groups[row]]

    def axis_groups(self) -> Groups:
        """Return the ranks of every group of a job of this layout, each in ring order, axis after axis."""
        return tuple(tuple(ranks) for axis in self.axes for ranks in self.groups(axis).tolist())

    @property
    def _sizes(self) -> dict[str, int]:
        return {"tp": self.tp, "cp": self.cp, "edp": self.dp // self.ep, "ep": self.ep, "pp": self.pp}
