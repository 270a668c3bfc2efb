"""Links of ranks from the transfers of their requests.

A rank whose link is slow has slow messages with all its neighbours, and so do the collectives of its groups. A
neighbour has one slow message and others that are not: the least excess over a rank's messages is its own link's.

Shapes: J joined requests, M members, R ranks.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import Operation
from fabrictune.observability.stragglers.requests import JoinedRequests, usual_transfer_ns
from fabrictune.observability.stragglers.robust import deviation

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
    edges: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    messages = np.flatnonzero(is_message_J)
    ends = np.stack([joined.rank_M[joined.first_J[messages] + place] for place in (0, 1)], axis=1)
    pairs, inverse = np.unique(ends, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    parts = np.split(messages[order], np.flatnonzero(np.diff(inverse[order])) + 1) if len(order) else []
    for pair, requests in zip(pairs.tolist(), parts, strict=True):
        if len(requests) >= MIN_REQUESTS:
            for rank in pair:
                value = float(np.median(excess_J[requests])), float(cost_J[requests].sum()), len(requests)
                edges[rank].append(value)
    # an end of the pipeline has one neighbour, whose other messages are not slow
    excess = {rank: min(value for value, _, _ in own) for rank, own in edges.items()}
    least = max(MIN_EXCESS, MIN_SIGMAS * deviation(np.array(list(excess.values())))) if excess else 0.0
    candidates = {rank for rank, value in excess.items() if value > least}
    single = {rank for rank in candidates if len(edges[rank]) > 1 or not _has_slow_neighbour(rank, pairs, candidates)}
    links = [
        SlowLink(ranks=(rank,), excess_fraction=excess[rank], num_requests=sum(number for *_, number in edges[rank]))
        for rank in sorted(single)
        if sum(cost for _, cost, _ in edges[rank]) > MIN_STEP_FRACTION
    ]
    return links, candidates - single


def _has_slow_neighbour(rank: int, pairs: "np.ndarray[tuple[int, int], np.dtype[np.int64]]", slow: set[int]) -> bool:
    return any(set(pair) - {rank} <= slow for pair in pairs.tolist() if rank in pair)


def _of_groups(spans: Spans, joined: JoinedRequests, excess_J: FloatArray, cost_J: FloatArray) -> list[SlowLink]:
    is_joint_J = (joined.operation_J != Operation.SEND) & np.isfinite(excess_J)
    groups = np.unique(joined.group_J[is_joint_J])
    excess, cost, number = {}, {}, {}
    for group in groups.tolist():
        requests = is_joint_J & (joined.group_J == group)
        excess[group] = float(np.median(excess_J[requests]))
        cost[group], number[group] = float(cost_J[requests].sum()), int(requests.sum())
    least = max(MIN_EXCESS, MIN_SIGMAS * deviation(np.array(list(excess.values())))) if excess else 0.0
    return [
        SlowLink(ranks=spans.groups[group], excess_fraction=value, num_requests=number[group])
        for group, value in excess.items()
        if value > least and cost[group] > MIN_STEP_FRACTION and number[group] >= MIN_REQUESTS
    ]
