"""Groups of a job, in the one order in which every rank makes those it is a member of.

All ranks know the whole list, each makes only its own groups, in the list's order. That cannot deadlock, whatever the
groups share. Take the first group in the list that is not complete: each of its members has completed all its
groups before it, for those stand earlier, and waits in no later one, for it has not passed this one. So all of them are
on their way to it, and it completes; then the same holds for the next. No barrier over all ranks is needed anywhere.

An axis whose ranks send each other messages has two groups over the same ranks: its own carries collectives and
messages to later ranks, the other one messages to earlier ranks. NCCL runs what two ranks of a group send each other
one after another, in one queue; with two groups each way has its own.

Source: MegaScale (NSDI'24), section 3.5.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.layout import Axis, ParallelLayout

MESSAGE_AXES: frozenset[Axis] = frozenset({"cp", "pp"})  # whose ranks send and receive


@dataclass(frozen=True, kw_only=True)
class ProcessGroup:
    """Ranks that will communicate; `members` are in the group's own order."""

    name: str
    members: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """All groups of a job in the order of their making. Raises InputError where a group is impossible."""

    world_size: int
    groups: tuple[ProcessGroup, ...]

    def __post_init__(self) -> None:
        mistakes = [*_mistakes_in_names(self.groups), *_mistakes_in_members(self.groups, self.world_size)]
        if mistakes:
            raise InputError(*mistakes)

    @classmethod
    def of_layout(cls, layout: ParallelLayout) -> Self:
        """Return the groups of a layout's axes, axis by axis, by first rank; a group of one rank needs no making."""
        groups = (
            ProcessGroup(name=name_of(axis, number), members=tuple(members))
            for axis in layout.axes
            if layout.degree(axis) > 1
            for name_of in _group_names(axis)
            for number, members in enumerate(layout.groups(axis).tolist())
        )
        return cls(world_size=layout.world_size, groups=tuple(groups))

    @cached_property
    def _groups_by_rank(self) -> tuple[tuple[ProcessGroup, ...], ...]:
        groups_by_rank: list[list[ProcessGroup]] = [[] for _ in range(self.world_size)]
        for group in self.groups:
            for rank in group.members:
                groups_by_rank[rank].append(group)
        return tuple(map(tuple, groups_by_rank))

    def of_rank(self, rank: int) -> tuple[ProcessGroup, ...]:
        """Return the groups that a rank is a member of, in the order of their making."""
        return self._groups_by_rank[rank]

    @cached_property
    def everyone(self) -> ProcessGroup:
        """The group of all ranks."""
        return ProcessGroup(name="world", members=tuple(range(self.world_size)))


def axis_group_name(axis: Axis, number: int) -> str:
    """Return the name of a layout's group: its axis, and its number among those of the axis."""
    return f"{axis}{number}"


def down_group_name(axis: Axis, number: int) -> str:
    """Return the name of the group of the same ranks that carries messages to earlier ones."""
    return f"{axis}{number}-down"


def _group_names(axis: Axis) -> tuple[Callable[[Axis, int], str], ...]:
    return (axis_group_name, down_group_name) if axis in MESSAGE_AXES else (axis_group_name,)


def _mistakes_in_names(groups: Sequence[ProcessGroup]) -> Iterable[Mistake]:
    seen = {"world"}
    for group in groups:
        if group.name in seen:
            yield Mistake(
                where=f"group {group.name}", found="a second group of this name", next_step="name it otherwise"
            )
        seen.add(group.name)


def _mistakes_in_members(groups: Sequence[ProcessGroup], world_size: int) -> Iterable[Mistake]:
    for group in groups:
        if len(set(group.members)) < max(2, len(group.members)):
            yield Mistake(
                where=f"group {group.name}", found=f"members {group.members}", allowed="two ranks or more, each once"
            )
        elif min(group.members) < 0 or max(group.members) >= world_size:
            yield Mistake(
                where=f"group {group.name}", found=f"members {group.members}", allowed=f"ranks 0 to {world_size - 1}"
            )
