"""Rendezvous of ranks through a store: each joins once, then waits for the other members of each of its groups.

A rendezvous is a tree of `FAN_OUT` branches over the members, flat for a group that fits: a member at an inner place of
the tree waits for those below it, then reports to the one above, and the go-ahead comes back the same way. No key has
more than `FAN_OUT` waiters and no member waits for more than `FAN_OUT` keys, so the rendezvous of all ranks is a
hierarchical barrier, and costs a number of operations proportional to their number.

Every key has one writer and names the member it is about, so writing it twice changes nothing, and a rendezvous that
fails can name the ranks that did not arrive.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.collectives.startup.store_operations import CheckKey, CompareSet, OverdueError, Set, Steps, Wait
from fabrictune.foundation.errors import Mistake, StartupError

FAN_OUT = 64
MAX_NAMED = 16  # ranks that an error names one by one


def join_attempt(rank: int, token: str) -> Steps[None]:
    """Enter a rank into the attempt under a token that no other process has.

    Raises StartupError if another process has entered as this rank.
    """
    holder = yield CompareSet(_joined_key(rank), "", token)
    if holder != token:
        raise StartupError(
            Mistake(
                where=f"rank {rank}",
                found=f"has joined this attempt before, as {holder}; now it joins as {token}",
                next_step="give each process its own rank, and each start of the job a new attempt name",
            )
        )


def rendezvous(group: ProcessGroup, rank: int) -> Steps[None]:
    """Return when every member of the group has arrived; raises StartupError, naming those that have not in time."""
    tree = Tree(group)
    place = group.members.index(rank)
    try:
        yield from _await_below(tree, place)
        if place:
            if tree.children(place):
                yield Set(tree.complete_key(place), "1")
            yield Wait((tree.go_key(tree.parent(place)),))
        if tree.children(place):
            yield Set(tree.go_key(place), "1")
    except OverdueError as overdue:
        yield from _name_the_missing(tree, overdue.waited_s)


def start(plan: GroupPlan, rank: int, token: str, form: Callable[[ProcessGroup], Steps[None]]) -> Steps[None]:
    """Join, then meet at the rendezvous of all ranks and of each own group, in the plan's order; `form` each after it.

    The rendezvous of all ranks is first: a missing rank is missing from all its groups, and is then named once.
    """
    yield from join_attempt(rank, token)
    for group in (plan.everyone, *plan.of_rank(rank)):
        yield from rendezvous(group, rank)
        yield from form(group)


@dataclass(frozen=True)
class Tree:
    """Places 0 to m - 1 of a group as a tree: the children of place p are FAN_OUT * p + 1 to FAN_OUT * (p + 1)."""

    group: ProcessGroup

    def children(self, place: int) -> range:
        """Return the places below."""
        size = len(self.group.members)
        return range(min(size, FAN_OUT * place + 1), min(size, FAN_OUT * (place + 1) + 1))

    def parent(self, place: int) -> int:
        """Return the place above; the root has none."""
        return (place - 1) // FAN_OUT

    def here_key(self, place: int) -> str:
        """Return the key by which a member says that it has arrived."""
        return f"{self.group.name}/{self.group.members[place]}/here"

    def complete_key(self, place: int) -> str:
        """Return the key that says that a member and all below it have arrived."""
        return (
            f"{self.group.name}/{self.group.members[place]}/complete" if self.children(place) else self.here_key(place)
        )

    def go_key(self, place: int) -> str:
        """Return the key that lets those below go on."""
        return f"{self.group.name}/{self.group.members[place]}/go"

    @property
    def num_inner(self) -> int:
        """Number of places with others below them."""
        return math.ceil((len(self.group.members) - 1) / FAN_OUT)


def _await_below(tree: Tree, place: int) -> Steps[None]:
    yield Set(tree.here_key(place), "1")
    if children := tree.children(place):
        yield Wait(tuple(tree.complete_key(child) for child in children))


def _name_the_missing(tree: Tree, waited_s: float) -> Steps[None]:
    """Ask for every member whether it has arrived, and raise."""
    missing = []
    for place, rank in enumerate(tree.group.members):
        if not (yield CheckKey(tree.here_key(place))):
            has_joined = yield CheckKey(_joined_key(rank))
            missing.append(f"rank {rank} ({'joined, but not this group' if has_joined else 'never joined'})")
    num_members = len(tree.group.members)
    raise StartupError(
        Mistake(
            where=f"group {tree.group.name}",
            found=f"after {waited_s:.1f} s {_describe(missing, num_members)}",
            next_step="look at the logs and hosts of these ranks, then start a new attempt"
            if missing
            else "give start-up more time",
        )
    )


def _describe(missing: list[str], num_members: int) -> str:
    if not missing:
        return f"all {num_members} ranks arrived, but too late"
    more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    return f"{len(missing)} of {num_members} ranks did not arrive: {', '.join(missing[:MAX_NAMED])}{more}"


def _joined_key(rank: int) -> str:
    return f"joined/{rank}"
