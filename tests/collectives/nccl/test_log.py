"""Messages of NCCL in every wording, whoever writes between them, become facts with file and line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.nccl.log import NcclLog, read_nccl_log
from fabrictune.collectives.nccl.log_lines import LogLine, split_line
from fabrictune.collectives.nccl.log_readers import gid_ipv4, read_facts
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.flows import UNKNOWN, ipv4_text


def read(tmp_path: Path, *lines: str) -> NcclLog:
    path = tmp_path / "nccl.log"
    path.write_text("\n".join(lines) + "\n")
    return read_nccl_log([path])


@pytest.mark.parametrize(
    "before",
    [
        "",
        "[2026-01-31 23:59:59] ",
        "[2026-01-31 23:59:59.123456] ",
        "[1,0]<stdout>:",
        "0: Jan 31 23:59:59 ",
    ],
)
def test_a_message_is_found_behind_any_time_or_tag(before: str) -> None:
    """Both default forms of a time, a launcher's tag, a time of the user's own format."""
    lines = list(split_line(f"{before}node-1.rack2:17:18 [3] NCCL INFO Using network IB", "nccl.log:4"))
    (message,) = (line for line in lines if line.host)
    assert message == LogLine(
        host="node-1.rack2", pid=17, tid=18, gpu=3, level="INFO", message="Using network IB", where="nccl.log:4"
    )
    assert [line.message for line in lines if not line.host] == [before.strip()] * bool(before)


def test_messages_written_into_one_line_are_taken_apart() -> None:
    """Two processes on one terminal; a row of nccl-tests before them is handed on."""
    line = "  1024   256   float a:1:1 [0] NCCL INFO Ring 00 : 3 -> 0 -> 1 b:2:2 [1] NCCL INFO Using network IB"
    assert [(part.host, part.message) for part in split_line(line, "")] == [
        ("", "1024   256   float"),
        ("a", "Ring 00 : 3 -> 0 -> 1"),
        ("b", "Using network IB"),
    ]


def test_a_warning_names_its_source_file_before_the_level(tmp_path: Path) -> None:
    """`[0] transport/net_ib.cc:1234 (ncclIbTest) NCCL WARN`: kept word for word."""
    text = "NET/IB: Got completion from peer 10.0.0.2<40123> with status=12"
    log = read(tmp_path, f"[2026-01-31 23:59:59] a:1:2 [0] transport/net_ib.cc:1234 (ncclIbTest) NCCL WARN {text}")
    assert [(warning.host, warning.message) for warning in log.warnings] == [("a", text)]


CHANNELS = {
    "Channel 00/0 : 2[0] -> 0[0] [receive] via NET/IB/0": (0, 0, 2, 0, "receive", "NET/IB", 0, -1, ()),
    "Channel 03/1 : 3[3] -> 4[0] [send] via NET/IB/1(2)/GDRDMA/Shared": (
        *(3, 1, 3, 4, "send", "NET/IB", 1, 2),
        ("GDRDMA", "Shared"),
    ),
    "Channel 02 : 8[101c0] -> 15[a01d0] [send] via NET/IB/3/GDRDMA": (
        2,
        0,
        8,
        15,
        "send",
        "NET/IB",
        3,
        -1,
        ("GDRDMA",),
    ),
    "Channel 00 : 0[0] -> 1[0] [send] via NET/Socket/0": (0, 0, 0, 1, "send", "NET/Socket", 0, -1, ()),
    "Channel 01 : 8[10c0] -> 0[10c0] [send] via NET/AWS Libfabric/0/GDRDMA": (
        *(1, 0, 8, 0, "send", "NET/AWS Libfabric", 0, -1),
        ("GDRDMA",),
    ),
    "Ring 02 : 1[160] -> 0[160] [receive] via NET/AWS Libfabric/0": (
        *(2, 0, 1, 0, "receive", "NET/AWS Libfabric", 0, -1),
        (),
    ),
    "Ring 00 : 0 -> 1 [send] via NET/IB/1/GDRDMA": (0, 0, 0, 1, "send", "NET/IB", 1, -1, ("GDRDMA",)),
    "Ring 01 : 3[3] -> 2[2] via P2P/IPC": (1, 0, 3, 2, "", "P2P/IPC", UNKNOWN, -1, ()),
    "Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer": (0, 0, 0, 1, "", "P2P/direct pointer", UNKNOWN, -1, ()),
}


@pytest.mark.parametrize("message", CHANNELS)
def test_a_channel_says_who_reaches_whom_and_how(tmp_path: Path, message: str) -> None:
    """With and without connection number, proxy rank and flags; bus numbers or devices in brackets."""
    (fact,) = read(tmp_path, f"a:1:2 [5] NCCL INFO {message}").channels
    found = (fact.channel, fact.connection, fact.source_rank, fact.destination_rank, fact.direction)
    assert (*found, fact.transport, fact.device, fact.proxy_rank, fact.flags) == CHANNELS[message]
    assert (fact.host, fact.pid, fact.gpu, fact.where) == ("a", 1, 5, f"{tmp_path}/nccl.log:1")


def test_a_log_of_nccl_2_4_is_read(tmp_path: Path) -> None:
    """Channels are called rings, ranks have no bus, and a ring does not say of how many it is."""
    log = read(
        tmp_path,
        "NCCL version 2.4.8+cuda10.0",
        "node01:2771:2801 [0] NCCL INFO Channel 00 :    0   1",
        "node01:2771:2801 [0] NCCL INFO Ring 00 : 1 -> 0 [receive] via NET/Socket/0",
        "node01:2771:2801 [0] NCCL INFO Ring 00 : 0 -> 1 [send] via NET/Socket/0",
        "node01:2771:2801 [0] NCCL INFO comm 0x7f3fd4001980 rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE",
    )
    assert [(ring.num_channels, ring.ranks) for ring in log.rings] == [(UNKNOWN, (0, 1))]
    assert [fact.direction for fact in log.channels] == ["receive", "send"]
    assert [(fact.rank, fact.num_ranks, fact.bus_id, fact.is_complete) for fact in log.ranks] == [(0, 2, "", True)]
    assert log.num_unread == 0


def test_messages_about_channels_that_fit_no_wording_are_counted(tmp_path: Path) -> None:
    """Neither another program's line nor another message counts."""
    log = read(
        tmp_path,
        "Channel 4 of the television",
        "a:1:1 [0] NCCL INFO Connected all rings",
        "a:1:1 [0] NCCL INFO Channel 00 => rank 3 to rank 1 by NET/IB/0",
        "a:1:1 [0] NCCL INFO rank 3 -> rank 1 via NET/IB/0",
    )
    assert (log.num_unread, log.first_unread) == (
        *(2, f"{tmp_path}/nccl.log:3: Channel 00 => rank 3 to rank 1 by NET/IB/0"),
    )


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Using network IB", "IB"),
        ("Using network AWS Libfabric", "AWS Libfabric"),
        ("Assigned NET plugin IBext_v8 to comm", "IBext_v8"),
    ],
)
def test_the_network_is_read(message: str, name: str, tmp_path: Path) -> None:
    """In the wording up to 2.26 and in the later one; the provider behind libfabric by itself."""
    log = read(tmp_path, f"a:1:1 [0] NCCL INFO {message}", "a:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, x")
    assert [fact.name for fact in log.networks] == [name]
    assert [fact.name for fact in log.providers] == ["efa"]


def test_rings_and_trees_are_read_in_both_forms(tmp_path: Path) -> None:
    """The whole ring, a rank's neighbours in it, and its place in two trees."""
    log = read(
        tmp_path,
        "a:1:1 [0] NCCL INFO Channel 01/04 :    0   3   6   5   4   7   2   1",
        "a:1:1 [0] NCCL INFO Ring 00 : 7 -> 0 -> 1",
        "a:1:1 [0] NCCL INFO Trees [0] 3/6/-1->2->-1 [1] 3/-1/-1->2->6",
    )
    assert [(ring.channel, ring.num_channels, ring.ranks) for ring in log.rings] == [(1, 4, (0, 3, 6, 5, 4, 7, 2, 1))]
    assert [(fact.previous_rank, fact.rank, fact.next_rank) for fact in log.neighbours] == [(7, 0, 1)]
    assert [(tree.channel, tree.children, tree.rank, tree.parent) for tree in log.trees] == [
        (0, (3, 6), 2, -1),
        (1, (3,), 2, 6),
    ]


def test_a_ring_with_a_number_of_5000_digits_is_no_ring(tmp_path: Path) -> None:
    """Python converts 4,300 digits at most: it was a ValueError. Digits without end cost linear time, too."""
    log = read(
        tmp_path,
        f"a:1:1 [0] NCCL INFO Channel 01/04 :    0   {'9' * 5000}",
        f"a:1:1 [0] NCCL INFO Channel 01/04 :    {'1 ' * 30000}x",
    )
    assert not log.rings


def test_ranks_devices_and_settings_are_read(tmp_path: Path) -> None:
    """Initialisation in two wordings, the list of nccl-tests, devices single and merged, settings of either source."""
    log = read(
        tmp_path,
        "#  Rank  5 Group  0 Pid 753027 on node-b device  1 [0000:26:00] NVIDIA H100 80GB HBM3",
        "a:7:8 [0] NCCL INFO NCCL version 2.26.2+cuda12.4",
        "a:7:8 [2] NCCL INFO ncclCommInitRank comm 0x61f87a0 rank 2 nranks 8 cudaDev 2 nvmlDev 2 busId a6000 "
        "commId 0x4a8fb6ecbba1a10a - Init START",
        "a:7:8 [1] NCCL INFO comm 0x7f00 rank 1 nranks 8 cudaDev 1 busId 26000 - Init COMPLETE",
        "a:7:8 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:2/IB [RO]; OOB eth0:10.0.0.1<0>",
        "a:7:8 [0] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2",
        "a:7:8 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.",
        "a:7:8 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_1",
    )
    assert [(fact.rank, fact.host, fact.gpu, fact.communicator, fact.is_complete) for fact in log.ranks] == [
        (5, "node-b", 1, "", False),
        (2, "a", 2, "0x4a8fb6ecbba1a10a", False),
        (1, "a", 1, "", True),
    ]
    assert [(fact.index, fact.name, fact.port, fact.link_layer) for fact in log.devices] == [
        (0, "mlx5_0", 1, "RoCE"),
        (1, "mlx5_1", 2, "IB"),
        (2, "mlx5_0+mlx5_1", 0, ""),
    ]
    assert [fact.version for fact in log.versions] == ["2.26.2+cuda12.4"]
    assert log.settings("NCCL_IB_GID_INDEX") == {"a": "3"}
    assert log.settings("NCCL_IB_HCA") == {"a": "mlx5_0,mlx5_1"}
    assert log.settings("NCCL_ALGO") == {}


@pytest.mark.parametrize(
    "message",
    [
        "NET/IB: NCCL Dev 1 IbDev 1 Port 1 qpn 576 mtu 3 GID 3 (0/1064A8C0FFFF0000) fifoRkey=0x1 fifoLkey=0x1",
        "NET/IB: NCCL Dev 1 IbDev 1 Port 1 qpn 576 mtu 3 query_ece={supported=0, vendor_id=0x0, options=0x0, "
        "comp_mask=0x0} GID 3 (0/1064A8C0FFFF0000) fifoRkey=0x4fd5 fifoLkey=0x4fd5",
        "NET/IB: ncclIbConnectImpl: NCCL Dev 1 IbDev 1 Port 1 qp_num 576 mtu 3 GID 3 (0/1064A8C0FFFF0000) x=0x1",
    ],
)
def test_a_queue_pair_has_a_number_and_an_address(tmp_path: Path, message: str) -> None:
    """Three wordings of NCCL; its GID is ::ffff:192.168.100.16, printed as two little-endian numbers."""
    (fact,) = read(tmp_path, f"a:1:9 [0] NCCL INFO {message}").queue_pairs
    assert (fact.device, fact.qpn, fact.gid_index, ipv4_text(fact.ipv4)) == (1, 576, 3, "192.168.100.16")


@pytest.mark.parametrize(
    ("prefix", "interface", "address"),
    [
        ("0", "F64A8C0FFFF0000", 0xC0A8640F),  # a leading zero is not printed
        ("80FE", "46442FFEFF47BB4E", UNKNOWN),  # link-local IPv6
        ("0", "1064A8C000000000", UNKNOWN),
    ],
)
def test_only_a_mapped_gid_is_an_ipv4_address(prefix: str, interface: str, address: int) -> None:
    """192.168.100.15 = C0 A8 64 0F, behind 00 00 FF FF."""
    assert gid_ipv4(prefix, interface) == address


def test_what_holds_no_message_is_refused(tmp_path: Path) -> None:
    """The output of something else says how to get a log."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, "step 1 loss 3.2", "step 2 loss 3.1")
    assert str(caught.value) == (
        f"{tmp_path}/nccl.log: no message of NCCL\n  allowed: lines with `host:pid:tid [gpu] NCCL INFO ...`\n"
        "  next: run the job with NCCL_DEBUG=INFO"
    )


def test_too_many_facts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory grows with the facts, so their number is bounded."""
    monkeypatch.setattr("fabrictune.collectives.nccl.log.MAX_FACTS", 2)
    with pytest.raises(InputError, match=r"nccl.log:3: more than 2 facts\n  next: give the part of the log"):
        read(tmp_path, *["a:1:1 [0] NCCL INFO Ring 00 : 7 -> 0 -> 1"] * 4)


def test_a_line_of_a_gigabyte_would_be_read_in_pieces(tmp_path: Path) -> None:
    """A line without end costs no memory, and the lines behind it keep their numbers."""
    path = tmp_path / "nccl.log"
    path.write_text("x" * 10**6 + "\na:1:1 [0] NCCL INFO Ring 00 : 7 -> 0 -> 1\n")
    (fact,) = read_nccl_log([path]).neighbours
    assert fact.where == f"{path}:2"


@given(st.text(max_size=200))
def test_any_message_is_facts_or_nothing(message: str) -> None:
    """No text after a prefix is a traceback."""
    line = LogLine(host="a", pid=1, tid=1, gpu=0, level="INFO", message=message, where="")
    assert isinstance(list(read_facts(line)), list)


@given(st.sampled_from([*CHANNELS, "Trees [0] 3/6/-1->2->-1", "NET/IB : Using [0]mlx5_0:1/RoCE"]), st.data())
def test_a_mutated_message_is_facts_or_nothing(message: str, data: st.DataObject) -> None:
    """Pieces cut out and doubled, digits added."""
    begin = data.draw(st.integers(0, len(message)))
    end = data.draw(st.integers(begin, len(message)))
    piece = data.draw(st.sampled_from(["", message[begin:end] * 3, "9" * 30, "-", "\x00"]))
    line = LogLine(
        host="a", pid=1, tid=1, gpu=0, level="INFO", message=message[:begin] + piece + message[end:], where=""
    )
    assert len(list(read_facts(line))) <= 10


def test_a_log_of_nccl_2_3_is_read(tmp_path: Path) -> None:
    """Only the receiver logs a connection, a rank's message has no device, and every device has one of its own."""
    log = read(
        tmp_path,
        "a:7:8 [1] NCCL INFO comm 0x7f00 rank 1 nranks 4 - COMPLETE",
        "a:7:8 [1] NCCL INFO NET/IB: [0] mlx5_0:1/IB ",
        "a:7:8 [1] NCCL INFO Ring 00 : 3 -> 1 via NET/IB/0/GDRDMA",
        "a:7:8 [1] NCCL INFO Ring 00 : 1[1] -> 2[2] via direct shared memory",
        "a:7:8 [1] NCCL INFO NET/IB: Dev 0 Port 1 qpn 576 mtu 5 GID 3 (0/1064A8C0FFFF0000)",
    )
    assert [(fact.rank, fact.gpu, fact.num_ranks, fact.is_complete) for fact in log.ranks] == [(1, 1, 4, True)]
    assert [(fact.name, fact.port, fact.link_layer) for fact in log.devices] == [("mlx5_0", 1, "IB")]
    assert [(fact.direction, fact.transport, fact.flags) for fact in log.channels] == [
        ("receive", "NET/IB", ("GDRDMA",)),
        ("", "SHM/direct", ()),
    ]
    assert [(fact.device, fact.qpn, ipv4_text(fact.ipv4)) for fact in log.queue_pairs] == [(0, 576, "192.168.100.16")]


@pytest.mark.parametrize(
    ("message", "trees"),
    [
        ("Trees [0] -1->0->1/2/-1 [1] 2->0->-1/-1/-1", [(0, (1, 2), 0, -1), (1, (), 0, 2)]),  # 2.4
        ("Trees [0] 1/-1/-1->0->3|3->0->1/-1/-1", [(0, (1,), 0, 3)]),  # 2.5 to 2.7: the way up, and the way down
    ],
)
def test_trees_before_nccl_2_8_are_read(
    tmp_path: Path, message: str, trees: list[tuple[int, tuple[int, ...], int, int]]
) -> None:
    """The parent stood first, then a rank had a place in two trees that are each other's mirror."""
    log = read(tmp_path, f"a:1:1 [0] NCCL INFO {message}")
    assert [(fact.channel, fact.children, fact.rank, fact.parent) for fact in log.trees] == trees


def test_a_log_of_rccl_is_read(tmp_path: Path) -> None:
    """Its messages about channels end with the communicator, and its version has a line of its own."""
    log = read(
        tmp_path,
        "RCCL version : 2.22.3-develop:a1b2c3",
        "a:1:1 [0] NCCL INFO Channel 00/04 :    0   1   3   2 comm 0xbb0 nRanks 04 busId c1000",
        "a:1:1 [0] NCCL INFO Channel 02/0 : 1[c6000] -> 0[c1000] [receive] via NET/IB/1/GDRDMA comm 0x95c nRanks 08",
        "a:1:1 [0] NCCL INFO Channel 02/0 : 0[c1000] -> 1[c6000] via P2P/IPC comm 0x95c nRanks 08",
    )
    assert [(fact.library, fact.version) for fact in log.versions] == [("RCCL", "2.22.3-develop:a1b2c3")]
    assert [ring.ranks for ring in log.rings] == [(0, 1, 3, 2)]
    assert [(fact.transport, fact.device, fact.flags) for fact in log.channels] == [
        ("NET/IB", 1, ("GDRDMA",)),
        ("P2P/IPC", UNKNOWN, ()),
    ]


def test_what_decides_a_bandwidth_is_read(tmp_path: Path) -> None:
    """Sizes, channels, GPUDirect with its reasons, PXN, rates, algorithms by number and by name."""
    log = read(
        tmp_path,
        "a:1:1 [0] NCCL INFO comm 0x61 rank 2 nRanks 8 nNodes 2 localRanks 4 localRank 2 MNNVL 0",
        "a:1:1 [0] NCCL INFO 4 coll channels, 4 collnet channels, 0 nvls channels, 6 p2p channels, "
        "2 p2p channels per peer",
        "a:1:1 [0] NCCL INFO 2 coll channels, 3 p2p channels, 1 p2p channels per peer",
        "a:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)",
        "a:1:1 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 1a000 / HCA 1 (distance 5 > 3)",
        "a:1:1 [0] NCCL INFO NET/Socket : GPU Direct RDMA Enabled for HCA 2 'eth0'",
        "a:1:1 [0] NCCL INFO Connected all rings, use ring PXN 1 GDR 0",
        "a:1:1 [0] NCCL INFO NET/IB: [0] mlx5_0:uverbs0:1/RoCE provider=Mlx5 speed=400000 context=0x1 pciPath=/x ar=0",
        "a:1:1 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..3}",
        "a:1:1 [0] NCCL INFO 2048 Bytes -> Algo 1 proto 0 time 12.5",
        "b:1:1 [0] NCCL INFO NET/IB : No device found.",
        "a:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa (found 16 nics)",
    )
    assert [(fact.num_ranks, fact.num_hosts, fact.ranks_of_host) for fact in log.sizes] == [(8, 2, 4)]
    assert [(fact.num_collective, fact.num_p2p, fact.num_p2p_per_peer) for fact in log.channel_counts] == [
        (4, 6, 2),
        (2, 3, 1),
    ]
    assert [(fact.device, fact.is_enabled, fact.reason) for fact in log.gpu_direct] == [
        ("mlx5_0", False, "no module"),
        ("1", False, "distance 5 > 3"),
        ("eth0", True, ""),
    ]
    assert [(fact.uses_pxn, fact.uses_gpu_direct) for fact in log.ring_paths] == [(True, False)]
    assert [(fact.name, fact.rate_bps) for fact in log.device_rates] == [("mlx5_0", 400_000_000_000)]
    assert [(fact.operation, fact.size_bytes, fact.algorithm, fact.protocol) for fact in log.algorithms] == [
        ("AllReduce", 1024, "NVLSTree", "Simple"),
        ("", 2048, "Ring", "LL"),
    ]
    assert [fact.host for fact in log.hosts_without_devices] == ["b"]
    assert [(fact.name, fact.num_devices) for fact in log.providers] == [("efa", 16)]
    assert log.logging_hosts == ("a", "b")
