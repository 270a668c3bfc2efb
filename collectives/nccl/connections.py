"""Connections between hosts in a log of NCCL: one for each channel that leaves a host.

The sending side logs `[send] via NET/IB/<device>`, the receiving side `[receive]`; where only one side's log is at
hand, the other's host comes from the list of ranks, and its device is taken to have the same number, as it has on hosts
of one kind with one rail for each device. Both are noted.

Left out: networks other than NET/IB and its plug-in with SHARP, which are counted in a note; the parts of devices that
NCCL merged into one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fabrictune.collectives.nccl.log import NO_COMMUNICATOR, NcclLog
from fabrictune.collectives.nccl.log_facts import NETWORK_PREFIX, NO_RANK, ChannelFact
from fabrictune.foundation.flows import UNKNOWN, Endpoint

_RDMA_TRANSPORT = re.compile(r"NET/IB(?:ext\w*)?")  # NCCL's own, and the plug-in with SHARP

Value = TypeVar("Value")
ConnectionKey = tuple[str, int, int, int, int]  # communicator, channel, connection, source and destination rank


@dataclass(frozen=True, kw_only=True)
class ConnectionEnd:
    """One side of a connection."""

    endpoint: Endpoint
    device: int  # index of the network device
    gpu: int  # of the process that opens it: the rank's own, or that of the rank whose device it uses
    row: int  # of this side's message in the log's channels; UNKNOWN where it logged none


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A channel from a rank on one host to a rank on another."""

    communicator: str
    channel: int
    connection: int  # 0 for collectives, 1 for send and receive
    source_rank: int
    destination_rank: int
    source: ConnectionEnd
    destination: ConnectionEnd
    where: str


@dataclass
class _Sides:
    """The rows of the two hosts' messages; UNKNOWN where there is none."""

    send: int = UNKNOWN
    receive: int = UNKNOWN


def is_rdma(transport: str) -> bool:
    """Return whether a transport opens queue pairs between hosts."""
    return _RDMA_TRANSPORT.fullmatch(transport) is not None


def find_connections(log: NcclLog) -> tuple[tuple[Connection, ...], tuple[str, ...]]:
    """Return the connections in the order of the log, and notes on what was assumed or left out."""
    hosts = _Hosts(log)
    result, num_homeless, num_one_sided = list[Connection](), 0, 0
    for key, sides in _sides_of_connections(log).items():
        connection = hosts.connect(key, sides)
        if connection is None:
            num_homeless += 1
        else:
            result.append(connection)
            num_one_sided += UNKNOWN in (sides.send, sides.receive)
    return tuple(result), tuple(_notes(log, num_homeless, num_one_sided, hosts.num_unnamed))


class _Hosts:
    """Hosts in the log: their ranks, and their devices' names and addresses."""

    def __init__(self, log: NcclLog) -> None:
        self.channels = log.channels
        self.host_of_rank = log.host_of_rank()
        self.gpu_of_rank = {(fact.communicator, fact.rank): fact.gpu for fact in log.ranks}
        self.gpu_of_rank |= {(NO_COMMUNICATOR, fact.rank): fact.gpu for fact in log.ranks}
        self.names: dict[str, dict[int, str]] = {}
        for device in log.devices:
            self.names.setdefault(device.host, {})[device.index] = device.name
        for fact in log.receiving_queue_pairs:
            self.names.setdefault(fact.host, {}).setdefault(fact.device, fact.device_name)
        tables = list(self.names.values())
        self.common_names = tables[0] if tables and all(table == tables[0] for table in tables) else {}
        self.addresses = {(fact.host, fact.device): fact.ipv4 for fact in log.queue_pairs}
        self.num_unnamed = 0  # devices whose number the log gives no name to

    def connect(self, key: ConnectionKey, sides: _Sides) -> Connection | None:
        """Return the connection, None where one of its hosts is not known."""
        communicator, channel, number, source_rank, destination_rank = key
        known = self.channels[sides.receive if sides.send == UNKNOWN else sides.send]
        opener = known.proxy_rank if sides.send != UNKNOWN and known.proxy_rank != NO_RANK else source_rank
        source = self._end(communicator, source_rank, opener, sides.send, known)
        destination = self._end(communicator, destination_rank, destination_rank, sides.receive, known)
        if not source.endpoint.host or not destination.endpoint.host:
            return None
        return Connection(
            communicator=communicator,
            channel=channel,
            connection=number,
            source_rank=source_rank,
            destination_rank=destination_rank,
            source=source,
            destination=destination,
            where=known.where,
        )

    def _end(self, communicator: str, rank: int, opener: int, row: int, known: ChannelFact) -> ConnectionEnd:
        """Return one side, by its own message or, where it has none, by what the other's and the ranks tell."""
        own = None if row == UNKNOWN else self.channels[row]
        host = own.host if own else self._of_rank(self.host_of_rank, communicator, rank, "")
        device = (own or known).device
        return ConnectionEnd(
            endpoint=self._endpoint(host, device),
            device=device,
            gpu=self._of_rank(self.gpu_of_rank, communicator, opener, own.gpu if own else UNKNOWN),
            row=row,
        )

    def _of_rank(self, table: Mapping[tuple[str, int], Value], communicator: str, rank: int, otherwise: Value) -> Value:
        return table.get((communicator, rank), table.get((NO_COMMUNICATOR, rank), otherwise))

    def _endpoint(self, host: str, device: int) -> Endpoint:
        """Return an end; a host that logs no devices is taken to have those that all others agree on."""
        names = self.names.get(host, self.common_names)
        only = next(iter(names.values())) if len(names) == 1 else ""
        name = names.get(device, only)
        self.num_unnamed += bool(host) and not name
        return Endpoint(host=host, device=name, ipv4=self.addresses.get((host, device), UNKNOWN))


def _sides_of_connections(log: NcclLog) -> dict[ConnectionKey, _Sides]:
    sides: dict[ConnectionKey, _Sides] = {}
    for row, (fact, communicator) in enumerate(zip(log.channels, log.communicators, strict=True)):
        if is_rdma(fact.transport) and fact.direction:
            key = communicator, fact.channel, fact.connection, fact.source_rank, fact.destination_rank
            setattr(sides.setdefault(key, _Sides()), fact.direction, row)
    return sides


def _notes(log: NcclLog, num_homeless: int, num_one_sided: int, num_unnamed: int) -> Iterator[str]:
    networks = {fact.transport for fact in log.channels if fact.transport.startswith(NETWORK_PREFIX)}
    others = {transport for transport in networks if not is_rdma(transport)}
    for transport in sorted(others):
        yield f"channels over {transport}, left out: {sum(fact.transport == transport for fact in log.channels)}"
    if num_homeless:
        yield f"channels to ranks whose host no message names, left out: {num_homeless}"
    if num_one_sided:
        yield f"channels logged by one side alone, whose other end is taken to use the same device: {num_one_sided}"
    if num_unnamed:
        yield f"ends whose device number no message names: {num_unnamed}"
