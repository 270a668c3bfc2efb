"""Links of ranks from the transfers of their requests.

A rank whose link is slow has slow messages with all its neighbours, and so do the collectives of its groups. A
neighbour has one slow message and others that are not: the least excess over a rank's messages is its own link's. Of
two ranks that only have each other, as in a pipeline of two, it is the one whose group takes longer for its bytes;
where that does not decide, both are named, as one of which has it. An excess counts where the requests' own scatter
does not explain it, as on a machine whose processors others use.

Shapes: J joined requests, M members, R ranks.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import hypot

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.robust import MIN_ERRORS, deviation, median_error
from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import Operation
from fabrictune.observability.stragglers.requests import JoinedRequests, usual_transfer_ns

MIN_REQUESTS = 5
MIN_EXCESS = 0.5  # of the usual transfer
MIN_DIFFERENCE = 0.25  # between the groups of two ranks of which one is known to have a slow link
PAIR_ERRORS = 2.0  # standard errors that it has to be beyond: of two, 1 of 40 is by chance
MIN_STEP_FRACTION = 0.01  # of a step, that the excess of a rank's transfers takes
MIN_SIGMAS = 8.0


@dataclass(frozen=True, kw_only=True)
class SlowLink:
    """A rank, or a group or a pair of which one has it, whose transfers are slow."""

    ranks: tuple[int, ...]
    excess_fraction: float  # beyond the usual transfer
    num_requests: int


@dataclass(frozen=True, kw_only=True)
class _Median:
    """What the requests between two ranks, or of a group, have in the middle, such as their excess."""

    median: float
    error: float  # its standard error
    number: int
    cost: float  # of all, as a fraction of a step

    @classmethod
    def of(cls, values: FloatArray, *, cost: float = 0.0) -> "_Median":
        number = len(values)
        return cls(median=float(np.median(values)), error=median_error(values, number), number=number, cost=cost)

    def is_beyond(self, least: float) -> bool:
        """Return whether it is more than the least that counts, and more than chance."""
        return self.median > max(least, MIN_ERRORS * self.error)


def slow_links(spans: Spans, joined: JoinedRequests, *, step_ns: float) -> tuple[SlowLink, ...]:
    """Return the slow links, those of single ranks first; a group is named where none of its ranks is."""
    usual_J = usual_transfer_ns(joined)
    is_seen_J = joined.is_exposed_J & (usual_J > 0)
    excess_J = np.where(is_seen_J, joined.transfer_ns_J / np.where(usual_J > 0, usual_J, 1) - 1, np.nan)
    num_steps = max(1, len(np.unique(joined.step_J)))
    cost_J = excess_J * usual_J / (num_steps * step_ns)
    found, pairs = _of_ranks(joined, excess_J, cost_J)
    found += [_decided(spans, joined, pair) for pair in pairs]
    named = {rank for link in found for rank in link.ranks}
    return *found, *(link for link in _of_groups(spans, joined, excess_J, cost_J) if not named & set(link.ranks))


def _of_ranks(
    joined: JoinedRequests, excess_J: FloatArray, cost_J: FloatArray
) -> tuple[list[SlowLink], list[SlowLink]]:
    """Return the slow links by messages, and the pairs of ranks of which either may have one."""
    edges = _edges(joined, excess_J, cost_J)
    own: dict[int, list[_Median]] = defaultdict(list)
    for pair, edge in edges.items():
        for rank in pair:
            own[rank].append(edge)
    # an end of the pipeline has one neighbour, whose other messages are not slow
    excess = {rank: min(messages, key=lambda edge: edge.median) for rank, messages in own.items()}
    least = _least(excess.values())
    slow = {
        rank
        for rank, messages in own.items()
        if excess[rank].is_beyond(least) and sum(edge.cost for edge in messages) > MIN_STEP_FRACTION
    }
    has_one = {rank for rank in slow if len(own[rank]) == 1}
    pairs = [pair for pair in edges if set(pair) <= has_one]
    beside = {rank for pair in edges if set(pair) <= slow for rank in set(pair) & has_one}

    def link(*ranks: int) -> SlowLink:
        number = sum(edge.number for edge in own[ranks[0]])
        return SlowLink(ranks=ranks, excess_fraction=excess[ranks[0]].median, num_requests=number)

    return [link(rank) for rank in sorted(slow - beside)], [link(*pair) for pair in pairs]


def _edges(joined: JoinedRequests, excess_J: FloatArray, cost_J: FloatArray) -> dict[tuple[int, int], _Median]:
    """Return the excess of the messages between two ranks, in both directions, where there are enough."""
    is_message_J = (joined.operation_J == Operation.SEND) & np.isfinite(excess_J)
    messages = np.flatnonzero(is_message_J)
    ends = np.stack([joined.rank_M[joined.first_J[messages] + place] for place in (0, 1)], axis=1)
    pairs, inverse = np.unique(ends, axis=0, return_inverse=True)
    order = np.argsort(inverse.reshape(-1), kind="stable")
    parts = np.split(messages[order], np.flatnonzero(np.diff(inverse.reshape(-1)[order])) + 1) if len(order) else []
    return {
        (int(first), int(second)): _Median.of(excess_J[requests], cost=float(cost_J[requests].sum()))
        for (first, second), requests in zip(pairs, parts, strict=True)
        if len(requests) >= MIN_REQUESTS
    }


def _decided(spans: Spans, joined: JoinedRequests, pair: SlowLink) -> SlowLink:
    """Return a pair's slow link with the rank alone that has it, if groups of one take longer than the other's."""
    first, second = pair.ranks
    times = _time_per_byte(spans, joined, first, without=second), _time_per_byte(spans, joined, second, without=first)
    said = {
        rank
        for sort in times[0].keys() & times[1].keys()
        for rank, own, other in ((first, times[0][sort], times[1][sort]), (second, times[1][sort], times[0][sort]))
        if own.median - other.median > max(MIN_DIFFERENCE * other.median, PAIR_ERRORS * hypot(own.error, other.error))
    }
    return replace(pair, ranks=tuple(said)) if len(said) == 1 else pair


def _time_per_byte(spans: Spans, joined: JoinedRequests, rank: int, *, without: int) -> dict[tuple[str, int], _Median]:
    """Return the time per byte, by axis and operation, of the collectives of a rank's groups that another is not in.

    Requests of half the largest size and more count: a small one takes its latency.
    """
    own = [group for group, ranks in enumerate(spans.groups) if rank in ranks and without not in ranks]
    is_own_J = np.isin(joined.group_J, own) & joined.is_exposed_J & (joined.operation_J != Operation.SEND)
    least_bytes = max(1, joined.bytes_J.max(initial=0, where=is_own_J) // 2)
    rows_of: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in np.flatnonzero(is_own_J & (joined.bytes_J >= least_bytes)).tolist():
        rows_of[joined.axis_J[row], int(joined.operation_J[row])].append(row)
    return {
        sort: _Median.of(joined.transfer_ns_J[rows] / joined.bytes_J[rows])
        for sort, rows in rows_of.items()
        if len(rows) >= MIN_REQUESTS
    }


def _of_groups(spans: Spans, joined: JoinedRequests, excess_J: FloatArray, cost_J: FloatArray) -> list[SlowLink]:
    is_joint_J = (joined.operation_J != Operation.SEND) & np.isfinite(excess_J)
    groups = np.unique(joined.group_J[is_joint_J])
    excess = {
        group: _Median.of(excess_J[rows], cost=float(cost_J[rows].sum()))
        for group in groups.tolist()
        if len(rows := np.flatnonzero(is_joint_J & (joined.group_J == group))) >= MIN_REQUESTS
    }
    least = _least(excess.values())
    return [
        SlowLink(ranks=spans.groups[group], excess_fraction=own.median, num_requests=own.number)
        for group, own in excess.items()
        if own.is_beyond(least) and own.cost > MIN_STEP_FRACTION
    ]


def _least(excess: Iterable[_Median]) -> float:
    """Return the excess that counts among others."""
    medians = np.array([own.median for own in excess])
    return max(MIN_EXCESS, MIN_SIGMAS * deviation(medians)) if len(medians) else 0.0
