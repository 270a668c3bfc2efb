"""Queue pairs behind a request that hangs: those of its communicator that begin or end at the processes to blame.

An NCCL log has the communicator of each; where completion errors name devices, only the queue pairs of these are kept.
A listing has the process at either end: those that join a process to blame with another member of the group are kept,
of these the ones that have failed. All others carry what went on, or may do so: a link that they share with a hung one
is less suspect.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.collectives.nccl.completion_errors import completion_errors
from fabrictune.collectives.nccl.flows import connection_flows
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.foundation.flows import Flow
from fabrictune.observability.hangs.diagnosis import Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN
from fabrictune.observability.hangs.job import Job, plain_hash
from fabrictune.rdma_bench.resources import ListedQueuePair, flow_between, joined_ends


@dataclass(frozen=True, kw_only=True)
class HungQueuePairs:
    """Flows from the end that sends; each is the way of one queue pair."""

    hung: tuple[Flow, ...]
    others: tuple[Flow, ...]
    is_by_error: bool  # a completion error names the devices
    notes: tuple[str, ...]


def find_hung_queue_pairs(diagnosis: Diagnosis, job: Job, log: NcclLog) -> HungQueuePairs:
    """Return the queue pairs of a diagnosis's group in a log, none where the log does not have the group."""
    pairs, notes = connection_flows(log)
    communicator = job.groups[diagnosis.group].communicator if diagnosis.group is not None else ""
    of_group = [pair for pair in pairs if communicator and plain_hash(pair[0].communicator) == plain_hash(communicator)]
    errors = completion_errors(log)
    failed = {(error.host, error.device) for error in errors if error.device}
    peers = {(error.host, error.peer_host) for error in errors if error.peer_host}
    by_error = [
        (connection, flow)
        for connection, flow in of_group or pairs
        if _touches(flow, failed) and (not peers or _joins(flow, peers))
    ]
    members = job.groups[diagnosis.group].members if diagnosis.group is not None else {}
    blamed = {place for place, process in members.items() if process in diagnosis.processes}
    chosen = by_error or [pair for pair in of_group if {pair[0].source_rank, pair[0].destination_rank} & blamed]
    hung = {id(flow) for _, flow in chosen}
    return HungQueuePairs(
        hung=tuple(flow for _, flow in chosen),
        others=tuple(flow for _, flow in pairs if id(flow) not in hung),
        is_by_error=bool(by_error),
        notes=tuple(notes),
    )


def find_listed_queue_pairs(diagnosis: Diagnosis, job: Job, queue_pairs: Sequence[ListedQueuePair]) -> HungQueuePairs:
    """Return the queue pairs of a diagnosis's processes in listings, none where no source has their numbers."""
    ends, notes = joined_ends([one for one in queue_pairs if one.has_other_end])
    processes = _Owners(job)
    members = set(job.groups[diagnosis.group].members.values()) if diagnosis.group is not None else set()
    blamed = set(diagnosis.processes)
    of_blamed = [pair for pair in ends if blamed & set(map(processes.of, pair))]
    inside = [pair for pair in of_blamed if members >= set(map(processes.of, pair))]
    failed = [pair for pair in inside or of_blamed if any(one.has_failed for one in pair)]
    chosen = failed or inside or of_blamed
    if ends and not of_blamed:
        notes.append(f"queue pairs of which none is of a process to blame, by host and number: {len(ends):,}")
    hung = set(map(id, chosen))
    return HungQueuePairs(
        hung=tuple(flow_between(*pair) for pair in chosen),
        others=tuple(flow_between(*pair) for pair in ends if id(pair) not in hung),
        is_by_error=bool(failed),
        notes=tuple(notes),
    )


class _Owners:
    """Processes of a job by host and number, or by number where only one of its processes has it."""

    def __init__(self, job: Job) -> None:
        self._of_name = {(who.host, who.pid): process for process, who in enumerate(job.processes)}
        self._of_pid: defaultdict[int, list[int]] = defaultdict(list)
        for process, who in enumerate(job.processes):
            self._of_pid[who.pid].append(process)

    def of(self, queue_pair: ListedQueuePair) -> int:
        """Return the process that owns a queue pair, UNKNOWN where none does."""
        if queue_pair.pid == UNKNOWN:
            return UNKNOWN
        alike = self._of_pid.get(queue_pair.pid, [])
        only = alike[0] if len(alike) == 1 else UNKNOWN
        return self._of_name.get((queue_pair.host, queue_pair.pid), only)


def _touches(flow: Flow, devices: set[tuple[str, str]]) -> bool:
    return any((end.host, end.device) in devices for end in (flow.source, flow.destination))


def _joins(flow: Flow, hosts: set[tuple[str, str]]) -> bool:
    ends = flow.source.host, flow.destination.host
    return ends in hosts or ends[::-1] in hosts


def describe_flow(flow: Flow) -> str:
    """Return a queue pair for people."""
    numbers = [str(number) if number >= 0 else "?" for number in (flow.source_qpn, flow.destination_qpn)]
    return f"{flow.source} to {flow.destination}, queue pairs {numbers[0]} and {numbers[1]} ({flow.origin})"


def sample(flows: Sequence[Flow], most: int) -> list[str]:
    """Return the first queue pairs for people, and how many more there are."""
    more = [f"and {len(flows) - most:,} more"] if len(flows) > most else []
    return [*map(describe_flow, flows[:most]), *more]
