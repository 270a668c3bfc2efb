"""Requests as profiles measured them, and those of ranks without a profile, which follow from their groups.

On each rank a request waits for the one before it on the same stream, and for the gap between them as work. A rank
without a profile made the collectives of its groups as the lowest rank with one made them; when, is unknown. Ranks in
the same groups made the same requests, so that these are put together once and repeated.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabrictune.collectives.traces.builder import TraceBuilder, TraceRow
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation

MAX_DERIVED_REQUESTS = 2_000_000  # of ranks without a profile

Group = tuple[int, ...]  # one object for each group, so that its ranks need not be compared


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRequest:
    """A request of a profile, with its place on a stream."""

    stream: tuple[object, object]
    request: TraceRow  # issue and completion as measured, without waits


def trace_of_profiles(
    of_rank: Mapping[int, Sequence[MeasuredRequest]], *, origin_ps: int, notes: Sequence[str] = ()
) -> CommTrace:
    """Return the trace of all ranks of all groups; each rank's requests come by time. Raises TraceError.

    Times count from `origin_ps`. A note says how many ranks have no profile.
    """
    builder = TraceBuilder()
    for rank in sorted(of_rank):
        for row in _chained(of_rank[rank], rank, len(builder)):
            builder.add(replace(row, issue_ps=row.issue_ps - origin_ps, complete_ps=row.complete_ps - origin_ps))
    collectives_of = _collectives_of_untraced(of_rank)
    num_derived = 0
    for groups, ranks in _alike(collectives_of, of_rank.keys()):
        num_derived += len(ranks)
        first_row = len(builder)
        requests = _by_time(request for group in groups for request in collectives_of[group])
        for row in _chained(requests, ranks[0], first_row):
            builder.add(replace(row, issue_ps=UNKNOWN, complete_ps=UNKNOWN))
        builder.repeat(len(builder) - first_row, ranks[1:])
    num_ranks = num_derived + len(of_rank)
    derived = f"ranks without a profile, taken to ask what the lowest profiled rank of their group does: {num_derived}"
    return builder.finish([*notes, *([f"{derived} of {num_ranks}"] if num_derived else [])])


_Placed = tuple[int, int, MeasuredRequest]  # the rank that made a request, its place there, the request


def _collectives_of_untraced(of_rank: Mapping[int, Sequence[MeasuredRequest]]) -> dict[Group, list[_Placed]]:
    """Return the collectives of each group with a rank without a profile, as its lowest rank with one made them."""
    groups = {id(event.request.group): event.request.group for events in of_rank.values() for event in events}
    donor_of = {}
    for group_id, group in groups.items():
        traced = [rank for rank in group if rank in of_rank]
        if len(traced) < len(group):
            donor_of[group_id] = min(traced)
    asked: dict[int, list[_Placed]] = defaultdict(list)
    for donor, events in of_rank.items():
        for place, event in enumerate(events):
            is_collective = event.request.operation not in (Operation.SEND, Operation.RECEIVE)
            if is_collective and donor_of.get(id(event.request.group)) == donor:
                asked[id(event.request.group)].append((donor, place, event))
    num_derived = sum(len(placed) * len(groups[group_id]) for group_id, placed in asked.items())
    if num_derived > MAX_DERIVED_REQUESTS:
        found = f"{num_derived:,} requests of ranks of which most have no trace"
        allowed = f"{MAX_DERIVED_REQUESTS:,}"
        raise TraceError(Mistake(where="traces", found=found, allowed=allowed, next_step="profile fewer steps"))
    return {groups[group_id]: placed for group_id, placed in asked.items()}


def _alike(groups: Iterable[Group], traced: Iterable[int]) -> Iterator[tuple[list[Group], list[int]]]:
    """Yield groups, and the ranks without a profile that are in these of all groups and in no other."""
    traced = set(traced)
    kinds: list[tuple[int, Group]] = [(0, ())]  # the kind before a group was seen, and the group; 0 is in none
    kind_of: dict[int, int] = {}  # of a rank, among the groups seen so far
    for group in groups:
        next_kind: dict[int, int] = {}
        for rank in group:
            if rank not in traced:
                kind = kind_of.get(rank, 0)
                if kind not in next_kind:
                    next_kind[kind] = len(kinds)
                    kinds.append((kind, group))
                kind_of[rank] = next_kind[kind]
    ranks_of_kind: dict[int, list[int]] = defaultdict(list)
    for rank, kind in kind_of.items():
        ranks_of_kind[kind].append(rank)
    for kind, ranks in ranks_of_kind.items():
        members = []
        while kind:
            kind, group = kinds[kind]
            members.append(group)
        yield members[::-1], ranks


def _by_time(placed: Iterable[_Placed]) -> list[MeasuredRequest]:
    return [event for *_, event in sorted(placed, key=lambda item: (item[2].request.issue_ps, *item[:2]))]


def _chained(events: Sequence[MeasuredRequest], rank: int, first_row: int) -> Iterator[TraceRow]:
    """Yield a rank's requests, each waiting for the one before it on its stream and for the gap between them."""
    last: dict[tuple[object, object], tuple[int, int]] = {}  # stream -> row and end of its last request
    for row, event in enumerate(events, first_row):
        request = event.request
        waits: tuple[int, ...] = ()
        gap_ps = 0
        if event.stream in last:
            waits, gap_ps = (last[event.stream][0],), max(0, request.issue_ps - last[event.stream][1])
        last[event.stream] = row, request.complete_ps
        yield replace(request, rank=rank, waits=waits, compute_before_ps=gap_ps)
