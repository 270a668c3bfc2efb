"""Requests as profiles measured them, and those of ranks without a profile, which follow from their groups.

On each rank a request waits for the one before it on the same stream, and for the gap between them as work, where both
times are known. A rank without a profile made the collectives of its groups as the lowest rank with one made them;
when, is unknown. Ranks in the same groups made the same requests, so that these are put together once and repeated.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabrictune.collectives.traces.builder import TraceBuilder, TraceRow
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_S

_NO_TIME_PS = 2**63  # what a column of times cannot hold: 106 days
MAX_DERIVED_REQUESTS = 2_000_000  # of ranks without a profile

Group = tuple[int, ...]  # one object for each group, so that its ranks need not be compared


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRequest:
    """A request of a profile, with its place on a stream."""

    stream: tuple[object, object]
    request: TraceRow  # issue and completion as measured, without waits
    kind: str = ""  # gather or scatter, whose request is that of a message
    messages: tuple[TraceRow, ...] = ()  # in its place, all at once


def trace_of_profiles(of_rank: Mapping[int, Sequence[MeasuredRequest]], *, notes: Sequence[str] = ()) -> CommTrace:
    """Return the trace of all ranks of all groups; each rank's requests come by time. Raises TraceError.

    Times count as in the files, or from the first request where they count from 1970. Notes say how many ranks have no
    profile.
    """
    builder, origin_ps = TraceBuilder(), _origin_ps(of_rank)
    for rank in sorted(of_rank):
        for row in _chained(of_rank[rank], rank, len(builder)):
            builder.add(
                replace(row, issue_ps=_since(origin_ps, row.issue_ps), complete_ps=_since(origin_ps, row.complete_ps))
            )
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


def _origin_ps(of_rank: Mapping[int, Sequence[MeasuredRequest]]) -> int:
    """Return the time that is 0: that of the files, or the first request's where they count from 1970."""
    times = [
        time_ps
        for events in of_rank.values()
        for event in events
        for time_ps in (event.request.issue_ps, event.request.complete_ps)
        if time_ps != UNKNOWN
    ]
    last_ps = max(times, default=0)
    if last_ps < _NO_TIME_PS:
        return 0
    first_ps = min(times)
    if last_ps - first_ps >= _NO_TIME_PS:
        found = f"requests that are {(last_ps - first_ps) // (86_400 * PS_PER_S)} days apart"
        raise TraceError(Mistake(where="traces", found=found, allowed="profiles of one run, less than 106 days"))
    return first_ps


def _since(origin_ps: int, time_ps: int) -> int:
    return UNKNOWN if time_ps == UNKNOWN else time_ps - origin_ps


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
    last: dict[tuple[object, object], tuple[range, int]] = {}  # stream -> rows and end of its last request
    row = first_row
    for event in events:
        request, rows = event.request, event.messages or (event.request,)
        waits, gap_ps = range(0), 0
        if event.stream in last:
            waits, end_ps = last[event.stream]
            gap_ps = 0 if UNKNOWN in (request.issue_ps, end_ps) else max(0, request.issue_ps - end_ps)
        last[event.stream] = range(row, row + len(rows)), request.complete_ps
        row += len(rows)
        for one in rows:
            yield replace(one, rank=rank, waits=tuple(waits), compute_before_ps=gap_ps)
