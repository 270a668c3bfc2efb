"""Facts that messages of NCCL state, one frozen class each, with their readers: `READERS` lists them all.

A reader is a pattern and a function from its match to facts. A message that fits no pattern says nothing that is used
here. Patterns accept the wordings of NCCL 2.7 to 2.30 that could be found in its source and in public logs.

Source: NCCL, src/init.cc, src/graph/connect.cc, src/transport/net.cc, src/transport/net_ib.cc (before 2.29),
src/transport/net_ib/connect.cc; nccl-tests, src/common.cu (the list of devices).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fabrictune.collectives.nccl.log_lines import LogLine
from fabrictune.foundation.flows import UNKNOWN

NO_RANK = -1
NETWORK_PREFIX = "NET/"


@dataclass(frozen=True, kw_only=True)
class RankFact:
    """A rank of a communicator and where it runs."""

    rank: int
    host: str
    gpu: int  # CUDA device
    pid: int
    bus_id: str  # "" before NCCL 2.5
    communicator: str  # "" where only nccl-tests' list of devices has the rank
    num_ranks: int
    is_complete: bool  # its initialisation has ended
    where: str


@dataclass(frozen=True, kw_only=True)
class DeviceFact:
    """A network device as NCCL numbers them on one host."""

    host: str
    index: int
    name: str  # mlx5_0
    port: int  # 0 for several devices merged into one
    link_layer: str  # RoCE, IB, or "" where it is not said
    where: str


@dataclass(frozen=True, kw_only=True)
class ChannelFact:
    """Connection of one rank to another on one channel."""

    channel: int
    connection: int  # 0 for collectives, 1 for send and receive
    source_rank: int
    destination_rank: int
    direction: str  # "send" or "receive", as seen from the host that wrote it; "" inside a host
    transport: str  # P2P/IPC, SHM/direct/direct, NET/IB
    device: int  # index of the network device; UNKNOWN inside a host
    proxy_rank: int  # the rank whose device is used, where it is another's; NO_RANK
    flags: tuple[str, ...]  # GDRDMA, Shared
    host: str
    pid: int
    gpu: int
    where: str


@dataclass(frozen=True, kw_only=True)
class RingFact:
    """The whole order of a channel's ring."""

    channel: int
    num_channels: int  # UNKNOWN before NCCL 2.5
    ranks: tuple[int, ...]
    where: str


@dataclass(frozen=True, kw_only=True)
class NeighbourFact:
    """A rank's neighbours in a channel's ring."""

    channel: int
    previous_rank: int
    rank: int
    next_rank: int
    where: str


@dataclass(frozen=True, kw_only=True)
class TreeFact:
    """A rank's place in a channel's tree."""

    channel: int
    rank: int
    parent: int  # NO_RANK at the root
    children: tuple[int, ...]
    where: str


@dataclass(frozen=True, kw_only=True)
class EnvironmentFact:
    """A setting in force on a host."""

    host: str
    name: str
    value: str
    where: str


@dataclass(frozen=True, kw_only=True)
class QueuePairFact:
    """A queue pair that a host opened to send through."""

    host: str
    pid: int
    tid: int
    gpu: int
    device: int  # index of the network device, as in ChannelFact
    qpn: int
    gid_index: int
    ipv4: int  # of the device; UNKNOWN where its GID is no IPv4 address
    where: str


@dataclass(frozen=True, kw_only=True)
class ReceivingQueuePairFact:
    """A queue pair that a host opened to receive through; NCCL logs these since 2.29."""

    host: str
    gpu: int
    device: int
    device_name: str
    qpn: int
    where: str


@dataclass(frozen=True, kw_only=True)
class HandshakeFact:
    """A queue pair in the second half of opening: the remote one's number up to NCCL 2.25, the own one's later."""

    host: str
    pid: int
    tid: int
    qpn: int
    where: str


@dataclass(frozen=True, kw_only=True)
class VersionFact:
    """The version of NCCL that wrote the log."""

    version: str
    where: str


@dataclass(frozen=True, kw_only=True)
class NetworkFact:
    """A network that a process uses between hosts: IB, Socket, or a plug-in's name."""

    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class ProviderFact:
    """The provider that the plug-in of libfabric has selected: efa, cxi."""

    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class WarningFact:
    """A warning, word for word."""

    host: str
    gpu: int
    message: str
    where: str


Fact = (
    RankFact
    | DeviceFact
    | ChannelFact
    | RingFact
    | NeighbourFact
    | TreeFact
    | EnvironmentFact
    | QueuePairFact
    | ReceivingQueuePairFact
    | HandshakeFact
    | VersionFact
    | NetworkFact
    | ProviderFact
    | WarningFact
)
Reader = Callable[[re.Match[str], LogLine], Iterator[Fact]]


def read_facts(line: LogLine) -> Iterator[Fact]:
    """Yield what a message states."""
    if line.level == "WARN":
        yield WarningFact(host=line.host, gpu=line.gpu, message=line.message, where=line.where)
    for pattern, reader in READERS:
        if match := pattern.search(line.message):
            yield from reader(match, line)
            return


def is_unread(line: LogLine) -> bool:
    """Return whether a message is about a channel or a ring, and in a wording that no reader knows."""
    return _ABOUT_CHANNELS.search(line.message) is not None and not any(
        pattern.search(line.message) for pattern, _ in READERS
    )


def gid_ipv4(prefix: str, interface: str) -> int:
    """Return the IPv4 address in a GID as NCCL prints it, UNKNOWN for a GID that holds none.

    Both halves are printed as numbers of a little-endian machine: `0/1064A8C0FFFF0000` is ::ffff:192.168.100.16.
    """
    try:
        raw = int(interface, 16).to_bytes(8, "little")
    except OverflowError:
        return UNKNOWN
    is_mapped = int(prefix, 16) == 0 and raw[:4] == b"\x00\x00\xff\xff"
    return int.from_bytes(raw[4:]) if is_mapped else UNKNOWN


def _rank(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    communicator = re.search(r"commId (0x[0-9a-f]{1,16})", line.message)
    yield RankFact(
        rank=int(match["rank"]),
        host=line.host,
        gpu=int(match["gpu"]),
        pid=line.pid,
        bus_id=match["bus_id"] or "",
        communicator=communicator[1] if communicator else "",
        num_ranks=int(match["num_ranks"]),
        is_complete=match["phase"] == "COMPLETE",
        where=line.where,
    )


def _listed_rank(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield RankFact(
        rank=int(match["rank"]),
        host=match["host"],
        gpu=int(match["gpu"]),
        pid=int(match["pid"]),
        bus_id=match["bus_id"],
        communicator="",
        num_ranks=UNKNOWN,
        is_complete=False,
        where=line.where,
    )


def _devices(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    for device in re.finditer(r"\[(\d{1,4})\] ?([\w.+-]{1,100}):(\d{1,3})/(\w{1,10})", match[1]):
        yield DeviceFact(
            host=line.host,
            index=int(device[1]),
            name=device[2],
            port=int(device[3]),
            link_layer=device[4],
            where=line.where,
        )


def _virtual_device(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield DeviceFact(
        host=line.host, index=int(match["index"]), name=match["name"], port=0, link_layer="", where=line.where
    )


def _channel(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    network = re.match(r"(NET/[^/]{1,40})/(\d{1,4})(?:\((\d{1,7})\))?((?:/\w{1,40}){0,8})", match["transport"])
    yield ChannelFact(
        channel=int(match["channel"]),
        connection=int(match["connection"] or 0),
        source_rank=int(match["source"]),
        destination_rank=int(match["destination"]),
        direction=match["direction"] or "",
        transport=network[1] if network else match["transport"].strip()[:80],
        device=int(network[2]) if network else UNKNOWN,
        proxy_rank=int(network[3]) if network and network[3] else NO_RANK,
        flags=tuple(network[4].split("/")[1:]) if network else (),
        host=line.host,
        pid=line.pid,
        gpu=line.gpu,
        where=line.where,
    )


def _ring(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    ranks = tuple(int(rank) for rank in match["ranks"].split())
    yield RingFact(
        channel=int(match["channel"]),
        num_channels=int(match["num_channels"] or UNKNOWN),
        ranks=ranks,
        where=line.where,
    )


def _neighbours(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    channel, previous_rank, rank, next_rank = (int(number) for number in match.groups())
    yield NeighbourFact(channel=channel, previous_rank=previous_rank, rank=rank, next_rank=next_rank, where=line.where)


def _trees(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    for tree in re.finditer(rf"\[(\d{{1,4}})\] {_CHILDREN}->(-?\d{{1,7}})->(-?\d{{1,7}})", match[1]):
        channel, *children, rank, parent = (int(number) for number in tree.groups())
        yield TreeFact(
            channel=channel,
            rank=rank,
            parent=parent,
            children=tuple(child for child in children if child != NO_RANK),
            where=line.where,
        )


def _environment(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield EnvironmentFact(host=line.host, name=match[1], value=match[2].removesuffix("."), where=line.where)


def _queue_pair(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    has_gid = match["prefix"] is not None
    yield QueuePairFact(
        host=line.host,
        pid=line.pid,
        tid=line.tid,
        gpu=line.gpu,
        device=int(match["device"]),
        qpn=int(match["qpn"]),
        gid_index=int(match["gid_index"]) if has_gid else UNKNOWN,
        ipv4=gid_ipv4(match["prefix"], match["interface"]) if has_gid else UNKNOWN,
        where=line.where,
    )


def _receiving_queue_pair(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield ReceivingQueuePairFact(
        host=line.host,
        gpu=line.gpu,
        device=int(match["device"]),
        device_name=match["name"],
        qpn=int(match["qpn"]),
        where=line.where,
    )


def _handshake(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield HandshakeFact(host=line.host, pid=line.pid, tid=line.tid, qpn=int(match[1]), where=line.where)


def _version(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield VersionFact(version=match[1].removesuffix("."), where=line.where)


def _network(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield NetworkFact(name=match[1], where=line.where)


def _provider(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield ProviderFact(name=match[1], where=line.where)


_ABOUT_CHANNELS = re.compile(r"^(?:Channel|Ring) \d|\bvia (?:NET|P2P|SHM)/")
_CHILDREN = r"(-?\d{1,7})/(-?\d{1,7})/(-?\d{1,7})"
_RANK_IN_HOST = r"(?P<{}>\d{{1,7}})(?:\[\w{{1,16}}\])?"

READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (
        re.compile(
            r"(?:Channel|Ring) (?P<channel>\d{1,4})(?:/(?P<connection>\d{1,2}))? : "
            rf"{_RANK_IN_HOST.format('source')} -> "
            rf"{_RANK_IN_HOST.format('destination')} (?:\[(?P<direction>send|receive)\] )?via (?P<transport>\S.*)"
        ),
        _channel,
    ),
    (
        re.compile(
            r"Channel (?P<channel>\d{1,4})(?:/(?P<num_channels>\d{1,4}))? : {1,16}"
            r"(?P<ranks>\d{1,7}(?: {1,16}\d{1,7})*) *$"
        ),
        _ring,
    ),
    (re.compile(r"Ring (\d{1,4}) : (-?\d{1,7}) -> (-?\d{1,7}) -> (-?\d{1,7})"), _neighbours),
    (re.compile(r"^Trees (.*)"), _trees),
    (
        re.compile(
            r"NET/IB ?: (?:\w{1,60}: )?NCCL (?:Merged)?Dev (?P<device>\d{1,4}) IbDev \d{1,4} Port \d{1,4} "
            r"(?:qpn|qp_num) (?P<qpn>\d{1,8}) mtu \d"
            r"(?:.* GID (?P<gid_index>-?\d{1,4}) \((?P<prefix>[0-9A-Fa-f]{1,16})/(?P<interface>[0-9A-Fa-f]{1,16})\))?"
        ),
        _queue_pair,
    ),
    (
        re.compile(
            r"NET/IB ?: ncclIbReceiver\w{1,40}: QP created: port=\d{1,4} dev=(?P<device>\d{1,4}) "
            r"devName=(?P<name>[\w.+-]{1,100}) .*qp_num=(?P<qpn>\d{1,8})"
        ),
        _receiving_queue_pair,
    ),
    (re.compile(r"NET/IB ?: .*Port \d{1,4} (?:qpn|qp_num) (\d{1,8}) set_ece="), _handshake),
    (re.compile(r"NET/IB ?: Using (.*)"), _devices),
    (
        re.compile(r"NET/IB ?: Made virtual device \[(?P<index>\d{1,4})\] name=(?P<name>[\w.+-]{1,400})"),
        _virtual_device,
    ),
    (re.compile(r"^(NCCL_\w{1,60}) set (?:by environment )?to (.*)"), _environment),
    (re.compile(r"NCCL version (\S{1,40})"), _version),
    (re.compile(r"^(?:Using network|Assigned NET plugin) (\S.{0,60}?)(?: to comm)? *$"), _network),
    (re.compile(r"NET/OFI Selected [Pp]rovider is (\w{1,40})"), _provider),
    (
        re.compile(
            r"comm 0x[0-9a-f]{1,16} rank (?P<rank>\d{1,7}) n[rR]anks (?P<num_ranks>\d{1,7}) .*cudaDev (?P<gpu>\d{1,4}) "
            r"(?:.*busId (?P<bus_id>[0-9a-f]{1,16}) )?.*Init (?P<phase>START|COMPLETE)"
        ),
        _rank,
    ),
    (
        re.compile(
            r"^#\s{1,9}Rank\s{1,9}(?P<rank>\d{1,7}) (?:Group\s{1,9}\d{1,4} )?Pid\s{1,9}(?P<pid>\d{1,10}) "
            r"on\s{1,9}(?P<host>\S{1,255}) device\s{1,9}(?P<gpu>\d{1,4}) \[(?P<bus_id>[\w:.]{1,20})\]"
        ),
        _listed_rank,
    ),
)
