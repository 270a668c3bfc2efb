"""Flows between hosts that a job opened, from its log of NCCL.

Each connection opens NCCL_IB_QPS_PER_CONNECTION queue pairs, and its data take all of them, in turn or split
(NCCL_IB_SPLIT_DATA_ON_QPS): the flows are the same, so that setting changes none of them. Numbers and source ports are
exact where the log has them and UNKNOWN elsewhere.

Source: NCCL user guide, environment variables.
"""

from collections.abc import Iterator, Sequence

from fabrictune.collectives.nccl.connections import Connection, find_connections
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.collectives.nccl.queue_pairs import assign_queue_pairs
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import UNKNOWN, Flow, ObservedFlows, collect_flows

QPS_SETTING = "NCCL_IB_QPS_PER_CONNECTION"
DEFAULT_QPS = 1
MAX_QPS = 128


def nccl_flows(log: NcclLog, *, qps_per_connection: int | None = None) -> ObservedFlows:
    """Return one flow for each queue pair, from the rank that sends; `qps_per_connection` overrides the log.

    Raises InputError for a number of queue pairs that NCCL does not allow.
    """
    if qps_per_connection is not None and not 1 <= qps_per_connection <= MAX_QPS:
        found = str(qps_per_connection)
        raise InputError(Mistake(where="qps_per_connection", found=found, allowed=f"1 to {MAX_QPS}"))
    pairs, notes = connection_flows(log, qps_per_connection=qps_per_connection)
    rows = [flow for _, flow in pairs]
    return collect_flows(rows, [*_notes_on_log(log, notes), *notes, *_notes_on_rows(rows)])


def connection_flows(
    log: NcclLog, *, qps_per_connection: int | None = None
) -> tuple[list[tuple[Connection, Flow]], Sequence[str]]:
    """Return each queue pair's connection and flow, and notes on connections that were left out."""
    connections, notes = find_connections(log)
    qps_of_host = {host: qps for host, value in log.settings(QPS_SETTING).items() if (qps := _qps(value))}
    elsewhere = next(iter(qps_of_host.values()), DEFAULT_QPS)  # hosts of a job have one environment
    counts = [
        qps_per_connection or qps_of_host.get(connection.source.endpoint.host, elsewhere) for connection in connections
    ]
    assigned = assign_queue_pairs(log, connections, counts)
    pairs = [
        (
            connection,
            Flow(
                source=connection.source.endpoint,
                destination=connection.destination.endpoint,
                source_qpn=numbers.source,
                destination_qpn=numbers.destination,
                origin=_origin(connection),
            ),
        )
        for connection, queue_pairs in zip(connections, assigned, strict=True)
        for numbers in queue_pairs
    ]
    return pairs, notes


def _qps(value: str) -> int:
    """Return the number of queue pairs that a setting says, 0 for what is no such number."""
    is_usable = value.isdecimal() and value.isascii() and len(value) <= 3 and int(value) <= MAX_QPS
    return int(value) if is_usable else 0


def _origin(connection: Connection) -> str:
    ranks = f"rank {connection.source_rank} to {connection.destination_rank}"
    return f"{connection.where}: channel {connection.channel}, {ranks}"


def _notes_on_log(log: NcclLog, others: Sequence[str]) -> Iterator[str]:
    if log.num_unread:
        yield f"messages about channels in a wording that is not read: {log.num_unread}, the first {log.first_unread}"
    elif not others and not any(fact.device != UNKNOWN for fact in log.channels):
        yield f"messages of NCCL: {log.num_messages:,}, of which channels inside a host: {len(log.channels):,}"


def _notes_on_rows(rows: list[Flow]) -> Iterator[str]:
    num_unnumbered = sum(row.source_qpn == UNKNOWN for row in rows)
    if num_unnumbered:
        yield f"queue pairs without number, which NCCL_DEBUG_SUBSYS=INIT,NET,ENV logs: {num_unnumbered}"
    num_half_known = sum(row.source_qpn != UNKNOWN and row.destination_qpn == UNKNOWN for row in rows)
    if num_half_known:
        yield f"queue pairs whose remote number the log does not have, and so no source port: {num_half_known}"
