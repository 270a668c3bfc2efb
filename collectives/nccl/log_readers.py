"""Readers of NCCL's messages: `READERS` lists the wording of each and the facts in it.

A reader is a pattern and a function from its match to facts. A message that fits no pattern says nothing that is used
here. Patterns accept the wordings of NCCL 2.3 to 2.30 and of RCCL, which ends its messages about channels with the
communicator.

Source: NVIDIA/nccl at v2.3.7 to v2.30.7, src/init.cc, src/graph, src/transport (net_ib.cc up to 2.28, net_ib/ since);
ROCm/rccl; aws/aws-ofi-nccl (the provider); nccl-tests, src/common.cu (the list of devices).
"""

import re
from collections.abc import Callable, Iterator

from fabrictune.collectives.nccl.log_facts import (
    NO_RANK,
    AlgorithmFact,
    ChannelCountFact,
    ChannelFact,
    DeviceFact,
    DeviceRateFact,
    EnvironmentFact,
    Fact,
    GpuDirectFact,
    HandshakeFact,
    NeighbourFact,
    NetworkFact,
    NoDeviceFact,
    ProviderFact,
    QueuePairFact,
    RankFact,
    ReceivingQueuePairFact,
    RingFact,
    RingPathFact,
    SizeFact,
    TreeFact,
    VersionFact,
    WarningFact,
)
from fabrictune.collectives.nccl.log_lines import LogLine
from fabrictune.foundation.flows import UNKNOWN

BPS_PER_MBPS = 10**6
ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")  # by NCCL's numbers
PROTOCOLS = ("LL", "LL128", "Simple")

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
    network = _NETWORK.match(match["transport"])
    yield ChannelFact(
        channel=int(match["channel"]),
        connection=int(match["connection"] or 0),
        source_rank=int(match["source"]),
        destination_rank=int(match["destination"]),
        direction=match["direction"] or ("receive" if network else ""),  # before NCCL 2.4 the receiver alone logs it
        transport=network[1] if network else _inside_host(match["transport"]),
        device=int(network[2]) if network else UNKNOWN,
        proxy_rank=int(network[3]) if network and network[3] else NO_RANK,
        flags=tuple(network[4].replace("(PCI)", "").split("/")[1:]) if network else (),
        host=line.host,
        pid=line.pid,
        gpu=line.gpu,
        where=line.where,
    )


def _inside_host(text: str) -> str:
    """Return a transport between GPUs of one host; RCCL writes the communicator behind it."""
    transport = text.partition(" comm ")[0].strip()[:80]
    return "SHM/direct" if transport == "direct shared memory" else transport


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
    for tree in _TREE.finditer(match[1]):
        numbers = [int(number) for number in tree.groups() if number is not None]
        if tree["rank"]:
            channel, *children, rank, parent = numbers
        else:
            channel, parent, rank, *children = numbers
        yield TreeFact(
            channel=channel,
            rank=rank,
            parent=parent,
            children=tuple(child for child in children if child != NO_RANK),
            where=line.where,
        )


def _environment(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield EnvironmentFact(host=line.host, name=match[1], value=match[2].removesuffix("."), where=line.where)


def _first_rank(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield RankFact(
        rank=int(match[1]),
        host=line.host,
        gpu=line.gpu,
        pid=line.pid,
        bus_id="",
        communicator="",
        num_ranks=int(match[2]),
        is_complete=True,
        where=line.where,
    )


def _device(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    """Yield a device of NCCL 2.3, which has a message of its own."""
    yield DeviceFact(
        host=line.host,
        index=int(match[1]),
        name=match[2],
        port=int(match[3]),
        link_layer=match[4],
        where=line.where,
    )


def _device_rate(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield DeviceRateFact(host=line.host, name=match[1], rate_bps=int(match[2]) * BPS_PER_MBPS, where=line.where)


def _no_device(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield NoDeviceFact(host=line.host, where=line.where)


def _size(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    num_ranks, num_hosts, ranks_of_host = (int(number) for number in match.groups())
    yield SizeFact(num_ranks=num_ranks, num_hosts=num_hosts, ranks_of_host=ranks_of_host, where=line.where)


def _channel_counts(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    num_collective, num_p2p, num_p2p_per_peer = (int(number) for number in match.groups())
    yield ChannelCountFact(
        num_collective=num_collective, num_p2p=num_p2p, num_p2p_per_peer=num_p2p_per_peer, where=line.where
    )


def _gpu_direct(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    is_enabled = match["state"] == "Enabled"
    yield GpuDirectFact(
        host=line.host,
        device=match["name"] or match["device"],
        is_enabled=is_enabled,
        reason="" if is_enabled else match["reason"] or "",
        where=line.where,
    )


def _ring_path(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield RingPathFact(uses_pxn=match[1] != "0", uses_gpu_direct=match[2] != "0", where=line.where)


def _algorithm(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield AlgorithmFact(
        operation=match["operation"] or "",
        size_bytes=int(match["bytes"]),
        algorithm=_named(match["algorithm"], ALGORITHMS),
        protocol=_named(match["protocol"], PROTOCOLS),
        where=line.where,
    )


def _named(text: str, names: tuple[str, ...]) -> str:
    """Return the name of a number, as NCCL up to 2.23 writes it, in the spelling that is used here."""
    if text.isdecimal():
        return names[int(text)] if int(text) < len(names) else text
    return next((name for name in names if name.upper() == text.replace("_", "").upper()), text)


def _queue_pair(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    has_gid = match["prefix"] is not None
    yield QueuePairFact(
        host=line.host,
        pid=line.pid,
        tid=line.tid,
        gpu=line.gpu,
        device=int(match["device"] or match["only_device"]),
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
    yield VersionFact(version=match[2].rstrip(".:"), library=match[1], where=line.where)


def _network(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    yield NetworkFact(name=match[1], where=line.where)


def _provider(match: re.Match[str], line: LogLine) -> Iterator[Fact]:
    num_devices = int(match[2]) if match[2] else UNKNOWN
    yield ProviderFact(name=match[1], host=line.host, num_devices=num_devices, where=line.where)


_ABOUT_CHANNELS = re.compile(r"^(?:Channel|Ring) \d|\bvia (?:NET|P2P|SHM)/")
_NETWORK = re.compile(r"(NET/[^/]{1,40})/(\d{1,4})(?:\((\d{1,7})\))?((?:/\w{1,40}(?:\(PCI\))?){0,8})")
_CHILDREN = r"(-?\d{1,7})/(-?\d{1,7})/(-?\d{1,7})"
_TREE = re.compile(  # children, rank and parent; NCCL 2.4 writes the parent first
    rf"\[(\d{{1,4}})\] (?:{_CHILDREN}->(?P<rank>-?\d{{1,7}})->(-?\d{{1,7}})|"
    rf"(-?\d{{1,7}})->(-?\d{{1,7}})->{_CHILDREN})"
)
_RCCL_TAIL = r"(?: comm 0x[0-9a-f]{1,16} .*)?"
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
            rf"(?P<ranks>\d{{1,7}}(?: {{1,16}}\d{{1,7}})*) *{_RCCL_TAIL}$"
        ),
        _ring,
    ),
    (re.compile(r"Ring (\d{1,4}) : (-?\d{1,7}) -> (-?\d{1,7}) -> (-?\d{1,7})"), _neighbours),
    (re.compile(r"^Trees (.*)"), _trees),
    (
        re.compile(
            r"NET/IB ?: (?:(?:\w{1,60}: )?NCCL (?:Merged)?Dev (?P<device>\d{1,4}) IbDev \d{1,4}|"
            r"Dev (?P<only_device>\d{1,4})) Port \d{1,4} "
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
    (re.compile(r"^NET/IB ?: No device found"), _no_device),
    (re.compile(r"^NET/IB: \[(\d{1,4})\] ([\w.+-]{1,100}):(\d{1,3})/(IB|RoCE) *$"), _device),
    (
        re.compile(
            r"^NET/IB: \[\d{1,4}\] ([\w.+-]{1,100}):[^ ]{1,100}:\d{1,3}/\w{1,10} (?:provider=\w{1,40} )?"
            r"speed=(\d{1,9}) "
        ),
        _device_rate,
    ),
    (
        re.compile(r"NET/IB ?: Made virtual device \[(?P<index>\d{1,4})\] name=(?P<name>[\w.+-]{1,400})"),
        _virtual_device,
    ),
    (re.compile(r"^(NCCL_\w{1,60}) set (?:by environment )?to (.*)"), _environment),
    (re.compile(r"([NR]CCL) version(?: :)? (\d\S{0,39})"), _version),
    (
        re.compile(
            r"^(?:Using (?:network|internal Network|external Network)|Assigned NET plugin) (\S.{0,60}?)(?: to comm)? *$"
        ),
        _network,
    ),
    (re.compile(r"NET/OFI Selected [Pp]rovider is (\w{1,40})(?:.*\(found (\d{1,4}) nics\))?"), _provider),
    (re.compile(r"^comm 0x[0-9a-f]{1,16} rank (\d{1,7}) nranks (\d{1,7}) - COMPLETE"), _first_rank),
    (
        re.compile(r"rank \d{1,7} nRanks (\d{1,7}) nNodes (\d{1,7}) localRanks (\d{1,7}) "),
        _size,
    ),
    (
        re.compile(
            r"^(\d{1,4}) coll channels, (?:\d{1,4} (?:collnet|nvls) channels, ){0,2}(\d{1,4}) p2p channels, "
            r"(\d{1,4}) p2p channels per peer"
        ),
        _channel_counts,
    ),
    (
        re.compile(
            r"GPU Direct RDMA (?P<state>Enabled|Disabled) for (?:GPU \S{1,20} / )?HCA (?P<device>[0-9a-f]{1,16})"
            r"(?: '(?P<name>[\w.+-]{1,100})')?(?: \((?P<reason>[^)]{1,80})\))?"
        ),
        _gpu_direct,
    ),
    (re.compile(r"^Connected all rings, use ring PXN (\d) GDR (\d)"), _ring_path),
    (
        re.compile(
            r"^(?:(?P<operation>\w{1,40}): )?(?P<bytes>\d{1,18}) Bytes -> Algo (?P<algorithm>\w{1,40}) "
            r"proto (?P<protocol>\w{1,40})"
        ),
        _algorithm,
    ),
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
