"""Observed choices of a switch: headers of flows, and the next hop that each of them got.

A choice is known from a probe that names the hop after the switch, or from the counter of the port that a flow's
packets raised. Choices are grouped: those of one switch among one set of next hops have one hash behind them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import networkx as nx

from fabrictune.topology.hash_learning.headers import FlowHeader


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One flow at one switch."""

    switch: str
    header: FlowHeader
    next_hop: str


@dataclass(frozen=True, kw_only=True)
class ChoiceGroup:
    """The choices of one switch among the same next hops, each header once."""

    switch: str
    next_hops: tuple[str, ...]
    headers: tuple[FlowHeader, ...]
    chosen: tuple[int, ...]  # number in `next_hops`
    num_changing: int = 0  # headers left out because they were seen with several next hops

    def __len__(self) -> int:
        return len(self.headers)


def group_choices(choices: Iterable[Choice]) -> tuple[ChoiceGroup, ...]:
    """Return the groups with two next hops or more, the largest first.

    Destinations whose next hops overlap share a group, since few probes of one need not have met all of its next hops.
    """
    hops_of: dict[tuple[str, FlowHeader], set[str]] = defaultdict(set)
    seen_of: dict[tuple[str, int], set[str]] = defaultdict(set)
    for choice in choices:
        hops_of[choice.switch, choice.header].add(choice.next_hop)
        seen_of[choice.switch, choice.header.destination_ipv4].add(choice.next_hop)
    members_of = _group_members(seen_of)
    headers_of: dict[tuple[str, tuple[str, ...]], list[FlowHeader]] = defaultdict(list)
    for switch, header in hops_of:
        headers_of[switch, members_of[switch, header.destination_ipv4]].append(header)
    groups = [
        _group(switch, members, headers, hops_of)
        for (switch, members), headers in headers_of.items()
        if len(members) > 1
    ]
    return tuple(sorted(groups, key=lambda group: (-len(group), group.switch, group.next_hops)))


def _group_members(seen_of: dict[tuple[str, int], set[str]]) -> dict[tuple[str, int], tuple[str, ...]]:
    """Return the next hops of the group that each destination of a switch belongs to."""
    graph: nx.Graph[tuple[str, int | str]] = nx.Graph()
    for (switch, destination), hops in seen_of.items():
        graph.add_edges_from(((switch, destination), (switch, hop)) for hop in hops)
    members_of: dict[tuple[str, int], tuple[str, ...]] = {}
    for component in nx.connected_components(graph):
        members = tuple(sorted(name for _, name in component if isinstance(name, str)))
        members_of |= {(switch, name): members for switch, name in component if isinstance(name, int)}
    return members_of


def _group(
    switch: str,
    members: tuple[str, ...],
    headers: Sequence[FlowHeader],
    hops_of: dict[tuple[str, FlowHeader], set[str]],
) -> ChoiceGroup:
    steady = [header for header in headers if len(hops_of[switch, header]) == 1]
    return ChoiceGroup(
        switch=switch,
        next_hops=members,
        headers=tuple(steady),
        chosen=tuple(members.index(next(iter(hops_of[switch, header]))) for header in steady),
        num_changing=len(headers) - len(steady),
    )
