"""Queue pairs behind a request that hangs: those of its communicator that begin or end at the processes to blame.

Where completion errors name devices, only the queue pairs of these are kept. All others of the log carry what went on,
or may do so: a link that they share with a hung one is less suspect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.collectives.nccl.completion_errors import completion_errors
from fabrictune.collectives.nccl.flows import connection_flows
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.foundation.flows import Flow
from fabrictune.observability.hangs.diagnosis import Diagnosis
from fabrictune.observability.hangs.job import Job, plain_hash


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
