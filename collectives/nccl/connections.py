"""The connections between hosts that a log of NCCL tells of: one for each channel that leaves a host.

The sending side logs `[send] via NET/IB/<device>`, the receiving side `[receive]`; where only one side's log is at
hand, the other's host comes from the list of ranks, and its device is taken to have the same number, as it has on hosts
of one kind with one rail for each device. Both are noted.

Left out: networks other than NET/IB (sockets, plug-ins), which are counted in a note.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from collectives.nccl.log import NO_COMMUNICATOR, NcclLog
from collectives.nccl.log_facts import NETWORK_PREFIX, NO_RANK, ChannelFact
from foundation.flows import UNKNOWN, Endpoint

RDMA_TRANSPORT = "NET/IB"

Key = tuple[str, int, int, int, int]  # communicator, channel, connection, source and destination rank


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A channel from a rank on one host to a rank on another."""

    communicator: str
    channel: int
    connection: int  # 0 for collectives, 1 for send and receive
    source_rank: int
    destination_rank: int
    source: Endpoint
    destination: Endpoint
    device: int  # index of the source's network device
    opener_gpu: int  # GPU of the process that opens it: the source rank's, or that of the rank whose device is used
    where: str


@dataclass
class _Sides:
    """What the two hosts of a connection logged of it."""

    send: ChannelFact | None = None
    receive: ChannelFact | None = None


def find_connections(log: NcclLog) -> tuple[tuple[Connection, ...], tuple[str, ...]]:
    """Return the connections in the order of the log, and notes on what was assumed or left out."""
    hosts = _Hosts(log)
    found, num_homeless, num_one_sided = list[Connection](), 0, 0
    for key, sides in _sides_of_connections(log).items():
        connection = hosts.connect(key, sides)
        if connection is None:
            num_homeless += 1
        else:
            found.append(connection)
            num_one_sided += sides.send is None or sides.receive is None
    return tuple(found), tuple(_notes(log, num_homeless, num_one_sided, hosts.num_unnamed))


class _Hosts:
    """What the log says of hosts: their ranks, and their devices' names and addresses."""

    def __init__(self, log: NcclLog) -> None:
        self.host_of_rank = log.host_of_rank()
        self.gpu_of_rank = {(fact.communicator, fact.rank): fact.gpu for fact in log.ranks}
        self.gpu_of_rank |= {(NO_COMMUNICATOR, fact.rank): fact.gpu for fact in log.ranks}
        self.names: dict[str, dict[int, str]] = {}
        for device in log.devices:
            self.names.setdefault(device.host, {})[device.index] = device.name
        tables = list(self.names.values())
        self.common_names = tables[0] if tables and all(table == tables[0] for table in tables) else {}
        self.addresses = {(fact.host, fact.device): fact.ipv4 for fact in log.queue_pairs}
        self.num_unnamed = 0  # devices whose number the log gives no name to

    def connect(self, key: Key, sides: _Sides) -> Connection | None:
        """Return the connection, None where one of its hosts is not known."""
        communicator, channel, number, source_rank, destination_rank = key
        known = sides.send or sides.receive
        assert known is not None, "there are sides because a message was read"
        source_host = sides.send.host if sides.send else self._host(communicator, source_rank)
        destination_host = sides.receive.host if sides.receive else self._host(communicator, destination_rank)
        if not source_host or not destination_host:
            return None
        device = (sides.send or known).device
        opener = known.proxy_rank if sides.send and known.proxy_rank != NO_RANK else source_rank
        return Connection(
            communicator=communicator,
            channel=channel,
            connection=number,
            source_rank=source_rank,
            destination_rank=destination_rank,
            source=self._endpoint(source_host, device),
            destination=self._endpoint(destination_host, (sides.receive or known).device),
            device=device,
            opener_gpu=self._gpu(communicator, opener, known.gpu),
            where=known.where,
        )

    def _host(self, communicator: str, rank: int) -> str:
        return self.host_of_rank.get((communicator, rank)) or self.host_of_rank.get((NO_COMMUNICATOR, rank), "")

    def _gpu(self, communicator: str, rank: int, otherwise: int) -> int:
        in_any = self.gpu_of_rank.get((NO_COMMUNICATOR, rank), otherwise)
        return self.gpu_of_rank.get((communicator, rank), in_any)

    def _endpoint(self, host: str, device: int) -> Endpoint:
        """Return an end; a host that logs no devices is taken to have those that all others agree on."""
        names = self.names.get(host, self.common_names)
        only = next(iter(names.values())) if len(names) == 1 else ""
        name = names.get(device, only)
        self.num_unnamed += not name
        return Endpoint(host=host, device=name, ipv4=self.addresses.get((host, device), UNKNOWN))


def _sides_of_connections(log: NcclLog) -> dict[Key, _Sides]:
    sides: dict[Key, _Sides] = {}
    for fact, communicator in zip(log.channels, log.communicators, strict=True):
        if fact.transport == RDMA_TRANSPORT and fact.direction:
            key = communicator, fact.channel, fact.connection, fact.source_rank, fact.destination_rank
            setattr(sides.setdefault(key, _Sides()), fact.direction, fact)
    return sides


def _notes(log: NcclLog, num_homeless: int, num_one_sided: int, num_unnamed: int) -> Iterator[str]:
    others = {fact.transport for fact in log.channels if fact.transport.startswith(NETWORK_PREFIX)} - {RDMA_TRANSPORT}
    for transport in sorted(others):
        yield f"channels over {transport}, left out: {sum(fact.transport == transport for fact in log.channels)}"
    if num_homeless:
        yield f"channels to ranks whose host no message names, left out: {num_homeless}"
    if num_one_sided:
        yield f"channels logged by one side alone, whose other end is taken to use the same device: {num_one_sided}"
    if num_unnamed:
        yield f"ends whose device number no message names: {num_unnamed}"
