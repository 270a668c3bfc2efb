"""Links of ranks from the transfers of their requests.

A rank whose link is slow has slow messages with all its neighbours, and so do the collectives of its groups. A
neighbour has one slow message and others that are not: the least excess over a rank's messages is its own link's. An
excess counts where the requests' own scatter does not explain it, as on a machine whose processors others use.

Shapes: J joined requests, M members, R ranks.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.robust import MIN_ERRORS, deviation, median_error
from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import Operation
from fabrictune.observability.stragglers.requests import JoinedRequests, usual_transfer_ns

MIN_REQUESTS = 5
MIN_EXCESS = 0.5  # of the usual transfer
MIN_STEP_FRACTION = 0.01  # of a step, that the excess of a rank's transfers takes
MIN_SIGMAS = 8.0


@dataclass(frozen=True, kw_only=True)
class SlowLink:
    """A rank, or a group of which one has it, whose transfers are slow."""

    ranks: tuple[int, ...]
    excess_fraction: float  # beyond the usual transfer
    num_requests: int


@dataclass(frozen=True, kw_only=True)
class _Excess:
    """Excess of the transfers of one pair of ranks, or of a group."""

    median: float
    error: float  # standard error of that median
    cost: float  # of a step
    number: int

    @classmethod
    def of(cls, excess: FloatArray, cost: FloatArray) -> "_Excess":
        number = len(excess)
        error = median_error(excess, number)
        return cls(median=float(np.median(excess)), error=error, cost=float(cost.sum()), number=number)

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
    found, suspects = _of_ranks(joined, excess_J, cost_J)
    named = {rank for link in found for rank in link.ranks}
    for link in _of_groups(spans, joined, excess_J, cost_J):
        if not named & set(link.ranks):
            suspected = tuple(suspects & set(link.ranks))  # of two neighbours, the one whose group is slow too
            found.append(replace(link, ranks=suspected) if len(suspected) == 1 else link)
    return tuple(found)


def _of_ranks(joined: JoinedRequests, excess_J: FloatArray, cost_J: FloatArray) -> tuple[list[SlowLink], set[int]]:
    """Return the slow links by messages, and the ranks of which either may have one."""
    is_message_J = (joined.operation_J == Operation.SEND) & np.isfinite(excess_J)
    edges: dict[int, list[_Excess]] = defaultdict(list)
    messages = np.flatnonzero(is_message_J)
    ends = np.stack([joined.rank_M[joined.first_J[messages] + place] for place in (0, 1)], axis=1)
    pairs, inverse = np.unique(ends, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    parts = np.split(messages[order], np.flatnonzero(np.diff(inverse[order])) + 1) if len(order) else []
    for pair, requests in zip(pairs.tolist(), parts, strict=True):
        if len(requests) >= MIN_REQUESTS:
            for rank in pair:
                edges[rank].append(_Excess.of(excess_J[requests], cost_J[requests]))
    # an end of the pipeline has one neighbour, whose other messages are not slow
    excess = {rank: min(own, key=lambda edge: edge.median) for rank, own in edges.items()}
    least = _least(excess.values())
    candidates = {rank for rank, own in excess.items() if own.is_beyond(least)}
    single = {rank for rank in candidates if len(edges[rank]) > 1 or not _has_slow_neighbour(rank, pairs, candidates)}
    links = [
        SlowLink(
            ranks=(rank,), excess_fraction=excess[rank].median, num_requests=sum(edge.number for edge in edges[rank])
        )
        for rank in sorted(single)
        if sum(edge.cost for edge in edges[rank]) > MIN_STEP_FRACTION
    ]
    return links, candidates - single


def _has_slow_neighbour(rank: int, pairs: "np.ndarray[tuple[int, int], np.dtype[np.int64]]", slow: set[int]) -> bool:
    return any(set(pair) - {rank} <= slow for pair in pairs.tolist() if rank in pair)


def _of_groups(spans: Spans, joined: JoinedRequests, excess_J: FloatArray, cost_J: FloatArray) -> list[SlowLink]:
    is_joint_J = (joined.operation_J != Operation.SEND) & np.isfinite(excess_J)
    groups = np.unique(joined.group_J[is_joint_J])
    excess = {
        group: _Excess.of(excess_J[rows], cost_J[rows])
        for group in groups.tolist()
        if len(rows := np.flatnonzero(is_joint_J & (joined.group_J == group))) >= MIN_REQUESTS
    }
    least = _least(excess.values())
    return [
        SlowLink(ranks=spans.groups[group], excess_fraction=own.median, num_requests=own.number)
        for group, own in excess.items()
        if own.is_beyond(least) and own.cost > MIN_STEP_FRACTION
    ]


def _least(excess: Iterable[_Excess]) -> float:
    """Return the excess that counts among others."""
    medians = np.array([own.median for own in excess])
    return max(MIN_EXCESS, MIN_SIGMAS * deviation(medians)) if len(medians) else 0.0
