"""Jobs that come to a halt: what each rank has issued, started and completed once nothing moves any more.

A rank's program is a list of actions: it issues a request to a group, or awaits one that it issued. A request completes
when all members have issued it, unless a fault keeps it from that. Messages between two ranks are a group of their own.

Left out: transfers that take long, so that a request is complete on all members or on none, but for a cut one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fabrictune.foundation.traces import CommTrace, Operation

Group = tuple[int, ...]
Key = tuple[str, Group]  # axis and ranks; of a message "pp>" and its ends


@dataclass(frozen=True, kw_only=True)
class Issue:
    """A request of a rank."""

    key: Key
    operation: Operation
    num_bytes: int
    tag: str = ""


@dataclass(frozen=True)
class Await:
    """A rank waits for a request that it issued: the number of the action."""

    action: int


Program = Sequence[Issue | Await]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is done to a job, at an action of a rank, or to a request of a group."""

    name: str
    rank: int = -1
    action: int = -1
    change: Issue | None = None  # issued in place of the rank's request
    cut: tuple[Key, int] | None = None  # a request that completes nowhere
    cut_ranks: tuple[int, ...] = ()  # or not on these


@dataclass(kw_only=True)
class Standing:
    """How far a rank has come in a group: numbers from 1."""

    issued: int = 0
    completed: int = 0
    open: dict[int, Issue] = field(default_factory=dict)
    done: list[tuple[int, Issue, int]] = field(default_factory=list)  # the last ones, with their times
    counts: dict[Operation, int] = field(default_factory=lambda: defaultdict(int))


@dataclass(frozen=True, kw_only=True)
class Halt:
    """A job that stands still."""

    num_ranks: int
    standings: Mapping[int, Mapping[Key, Standing]]  # by rank
    awaits: Mapping[int, tuple[Key, int] | None]  # what each rank waits for, None where it does not
    ended: frozenset[int]  # ranks that came to the end of their program


NUM_KEPT = 4  # completed requests of a rank and group


def halt(programs: Mapping[int, Program], fault: Fault) -> Halt:
    """Return where a job stands in the end."""
    standings: dict[int, dict[Key, Standing]] = {rank: {} for rank in programs}
    issued_by: defaultdict[tuple[Key, int], int] = defaultdict(int)
    waiters: defaultdict[tuple[Key, int], list[int]] = defaultdict(list)
    is_odd: set[tuple[Key, int]] = set()
    request_of: dict[int, dict[int, tuple[Key, int]]] = {rank: {} for rank in programs}
    at = dict.fromkeys(programs, 0)
    clock = dict.fromkeys(programs, 0)
    awaits: dict[int, tuple[Key, int] | None] = dict.fromkeys(programs)
    runnable = sorted(programs, reverse=True)

    def complete(request: tuple[Key, int]) -> None:
        key, number = request
        now = max(clock[rank] for rank in key[1]) + 1
        for rank in key[1]:
            if request == fault.cut and (not fault.cut_ranks or rank in fault.cut_ranks):
                continue
            standing = standings[rank][key]
            issue = standing.open.pop(number)
            standing.completed = max(standing.completed, number)
            standing.done = [*standing.done[1 - NUM_KEPT :], (number, issue, now)]
        for rank in waiters.pop(request, []):
            if number not in standings[rank][key].open:
                clock[rank], awaits[rank] = max(now, clock[rank]), None
                runnable.append(rank)

    while runnable:
        rank = runnable.pop()
        program = programs[rank]
        while at[rank] < len(program):
            place = at[rank]
            is_here = rank == fault.rank and place == fault.action
            if is_here and fault.change is None and fault.name != "missing request":
                break
            step = program[place]
            at[rank] += 1
            clock[rank] += 1
            if isinstance(step, Await):
                request = request_of[rank].get(step.action)
                if request is not None and request[1] in standings[rank][request[0]].open:
                    waiters[request].append(rank)
                    awaits[rank] = request
                    break
                continue
            if is_here and fault.change is None:
                continue
            issue = fault.change if is_here and fault.change is not None else step
            standing = standings[rank].setdefault(issue.key, Standing())
            standing.issued += 1
            standing.counts[issue.operation] += 1
            request = (issue.key, standing.issued)
            standing.open[standing.issued] = issue
            request_of[rank][place] = request
            others = [standings[other].get(issue.key) for other in issue.key[1] if other != rank]
            if any(
                other is not None
                and (theirs := other.open.get(standing.issued)) is not None
                and _differs(theirs, issue)
                for other in others
            ):
                is_odd.add(request)
            issued_by[request] += 1
            if issued_by[request] == len(issue.key[1]) and request not in is_odd:
                complete(request)
    ended = frozenset(rank for rank, program in programs.items() if at[rank] == len(program) and awaits[rank] is None)
    return Halt(num_ranks=len(programs), standings=standings, awaits=awaits, ended=ended)


def _differs(first: Issue, second: Issue) -> bool:
    messages = (Operation.SEND, Operation.RECEIVE)
    if first.operation in messages and second.operation in messages:
        return False
    return (first.operation, first.num_bytes) != (second.operation, second.num_bytes)


def programs_of(trace: CommTrace, *, num_repeats: int = 1) -> Mapping[int, Program]:
    """Return the programs of a trace's ranks: before a request its rank awaits those that it depends on."""
    programs: dict[int, list[Issue | Await]] = {rank: [] for rank in sorted(set(trace.rank_N.tolist()))}
    for _ in range(num_repeats):
        action_of: dict[int, int] = {}
        for row, rank in enumerate(trace.rank_N.tolist()):
            program = programs[rank]
            for earlier in trace.dependencies.of(row).tolist():
                if earlier in action_of:
                    program.append(Await(action_of[earlier]))
            group = trace.groups[int(trace.group_N[row])]
            if len(group) < 2:
                continue
            operation, axis, peer = Operation(int(trace.operation_N[row])), trace.axis_N[row], int(trace.peer_N[row])
            key = (axis, group)
            if operation is Operation.SEND:
                key = (f"{axis}>", (rank, peer))
            elif operation is Operation.RECEIVE:
                key = (f"{axis}>", (peer, rank))
            action_of[row] = len(program)
            program.append(Issue(key=key, operation=operation, num_bytes=int(trace.bytes_N[row]), tag=trace.tag_N[row]))
        for program in programs.values():
            program += [Await(place) for place, step in enumerate(program) if isinstance(step, Issue)][-8:]
    return programs
