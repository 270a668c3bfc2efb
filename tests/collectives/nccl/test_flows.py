"""Logs of two hosts become connections, queue pairs and flows; what a log does not say stays unknown and is noted."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from fabrictune.collectives.nccl.connections import find_connections
from fabrictune.collectives.nccl.flows import nccl_flows
from fabrictune.collectives.nccl.log import NcclLog, read_nccl_log
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.flows import UNKNOWN, ObservedFlows, ipv4_text

COMMUNICATOR = "commId 0x1f82f8f6b7863cd3"
GIDS = {"a": "1064A8C0FFFF0000", "b": "F64A8C0FFFF0000"}  # 192.168.100.16 and .15


def says(host: str, message: str, *, gpu: int = 0, tid: int = 9) -> str:
    return f"{host}:1:{tid} [{gpu}] NCCL INFO {message}"


def starts(host: str, rank: int, *, gpu: int = 0) -> list[str]:
    comm = f"comm 0x43dc rank {rank} nranks 2 cudaDev {gpu} nvmlDev {gpu} busId 80 {COMMUNICATOR} - Init START"
    return [says(host, "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"), says(host, comm)]


def channel(host: str, number: int, source: int, destination: int, direction: str, device: int = 0) -> str:
    return says(host, f"Channel {number:02}/0 : {source}[0] -> {destination}[0] [{direction}] via NET/IB/{device}")


def opens(host: str, qpn: int, device: int = 0) -> str:
    return says(
        host,
        f"NET/IB: NCCL Dev {device} IbDev {device} Port 1 qpn {qpn} mtu 3 GID 3 (0/{GIDS[host]}) fifoRkey=0x1",
    )


def connects(host: str, qpn: int) -> str:
    return says(host, f"NET/IB: IbDev 0 Port 1 qpn {qpn} set_ece={{supported=0, vendor_id=0x0, options=0x0}}")


def read(tmp_path: Path, *lines: str) -> NcclLog:
    path = tmp_path / "nccl.log"
    path.write_text("\n".join(lines) + "\n")
    return read_nccl_log([path])


def flows(tmp_path: Path, *lines: str, qps_per_connection: int | None = None) -> ObservedFlows:
    return nccl_flows(read(tmp_path, *lines), qps_per_connection=qps_per_connection)


BOTH = (*starts("a", 0), *starts("b", 1))
ONE_CHANNEL = (*BOTH, channel("a", 0, 0, 1, "send"), channel("b", 0, 0, 1, "receive", 1))


def test_both_sides_of_a_channel_are_one_connection(tmp_path: Path) -> None:
    """Rank 0 sends through device 0 of a, rank 1 receives through device 1 of b."""
    found = flows(tmp_path, *ONE_CHANNEL)
    assert [found.label(row) for row in range(len(found))] == ["a/mlx5_0 to b/mlx5_1"]
    assert found.origin_F == (f"{tmp_path}/nccl.log:5: channel 0, rank 0 to 1",)
    assert found.notes == ("queue pairs without number, which NCCL_DEBUG_SUBSYS=INIT,NET,ENV logs: 1",)


def test_the_log_of_one_side_is_enough_where_the_ranks_are_listed(tmp_path: Path) -> None:
    """b logs nothing: its rank stands in nccl-tests' list, its device is taken to be the one with the same number."""
    listed = "#  Rank  1 Group  0 Pid  77 on b device  0 [0000:06:00] NVIDIA H100"
    found = flows(tmp_path, listed, *starts("a", 0), channel("a", 0, 0, 1, "send", 1))
    assert [found.label(row) for row in range(len(found))] == ["a/mlx5_1 to b/mlx5_1"]
    assert found.notes[0] == ("channels logged by one side alone, whose other end is taken to use the same device: 1")


def test_a_rank_that_no_message_places_leaves_its_channels_out(tmp_path: Path) -> None:
    """Without b's log or a list of ranks nobody knows where rank 1 is."""
    found = flows(tmp_path, *starts("a", 0), channel("a", 0, 0, 1, "send"))
    assert len(found) == 0
    assert found.notes == ("channels to ranks whose host no message names, left out: 1",)


@pytest.mark.parametrize(
    ("setting", "override", "expected"),
    [((), None, 1), (("4",), None, 4), (("4",), 2, 2), (("many",), None, 1), (("1000",), None, 1)],
)
def test_every_queue_pair_of_a_connection_is_a_flow(
    tmp_path: Path, setting: Sequence[str], override: int | None, expected: int
) -> None:
    """NCCL_IB_QPS_PER_CONNECTION from the log, unless it is overridden; what is no such number is the default."""
    settings = [says("a", f"NCCL_IB_QPS_PER_CONNECTION set by environment to {value}.") for value in setting]
    assert len(flows(tmp_path, *settings, *ONE_CHANNEL, qps_per_connection=override)) == expected


def test_a_number_of_queue_pairs_that_nccl_refuses_is_refused(tmp_path: Path) -> None:
    """1 to 128."""
    with pytest.raises(InputError, match="qps_per_connection: 129\n  allowed: 1 to 128"):
        flows(tmp_path, *ONE_CHANNEL, qps_per_connection=129)


def test_up_to_nccl_2_25_both_numbers_and_so_the_source_port_are_known(tmp_path: Path) -> None:
    """0x45 opened, 0x48 in the handshake: 0xD368, as the kernel computes it."""
    found = flows(tmp_path, *ONE_CHANNEL, opens("a", 0x45), connects("a", 0x48))
    assert (found.source_qpn_F.tolist(), found.destination_qpn_F.tolist()) == ([0x45], [0x48])
    assert found.source_port_F.tolist() == [0xD368]
    assert ipv4_text(int(found.source_ipv4_F[0])) == "192.168.100.16"
    assert found.notes == ()


def test_later_versions_repeat_the_own_number_and_the_source_port_stays_unknown(tmp_path: Path) -> None:
    """A handshake with a number that the thread itself opened tells nothing of the other end."""
    found = flows(tmp_path, *ONE_CHANNEL, opens("a", 0x45), connects("a", 0x45))
    assert (found.source_qpn_F.tolist(), found.source_port_F.tolist()) == ([0x45], [UNKNOWN])
    assert found.notes == ("queue pairs whose remote number the log does not have, and so no source port: 1",)


def accepts(host: str, qpn: int, device: int = 0) -> str:
    return says(
        host,
        f"NET/IB: ncclIbReceiverQpsCreateToRts: QP created: port=1 dev={device} devName=mlx5_{device} ndevs=2 nmdevs=2 "
        f"qp_num={qpn} pkey=0 pd=0x7f oooRq=0",
    )


def test_since_nccl_2_29_the_receiver_logs_its_queue_pairs(tmp_path: Path) -> None:
    """Both sides' numbers, each in the order of its own channels; the receiver logged its channels reversed."""
    sent = [channel("a", number, 0, 1, "send") for number in range(2)]
    received = [channel("b", number, 0, 1, "receive", 1) for number in (1, 0)]
    opened = [
        opens("a", 10),
        opens("a", 11),
        connects("a", 10),
        connects("a", 11),
        accepts("b", 21, 1),
        accepts("b", 20, 1),
    ]
    flush = says("b", "NET/IB: ncclIbReceiverQpsCreateToRts: Flush QP created: port=1 dev=1 devName=mlx5_1 qp_num=99")
    found = flows(tmp_path, *BOTH, *received, *sent, *opened, flush)
    pairs = dict(zip(found.source_qpn_F.tolist(), found.destination_qpn_F.tolist(), strict=True))
    assert pairs == {10: 20, 11: 21}
    assert found.notes == ()


def test_numbers_go_to_connections_of_their_device_in_order(tmp_path: Path) -> None:
    """Channels 0 and 2 use device 0, channel 1 device 1; two queue pairs each, and every device counts its own."""
    channels = [channel("a", number, 0, 1, "send", number % 2) for number in range(3)]
    received = [channel("b", number, 0, 1, "receive", number % 2) for number in range(3)]
    opened = [opens("a", 10), opens("a", 20, 1), opens("a", 11), opens("a", 12), opens("a", 21, 1), opens("a", 13)]
    found = flows(tmp_path, *BOTH, *channels, *received, *opened, qps_per_connection=2)
    assert found.source_qpn_F.tolist() == [10, 11, 20, 21, 12, 13]


def test_numbers_that_do_not_fit_the_connections_are_given_to_none(tmp_path: Path) -> None:
    """Two queue pairs for one connection of one: somebody else's are among them."""
    found = flows(tmp_path, *ONE_CHANNEL, opens("a", 10), opens("a", 11))
    assert found.source_qpn_F.tolist() == [UNKNOWN]


def test_a_proxy_opens_the_queue_pairs_of_the_rank_whose_device_it_uses(tmp_path: Path) -> None:
    """PXN: rank 0 sends through the device of rank 2, whose process on GPU 2 opens the queue pair."""
    ranks = [*starts("a", 0), *starts("a", 2, gpu=2), *starts("b", 1)]
    send = says("a", "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/1(2)/GDRDMA")
    opened = says("a", f"NET/IB: NCCL Dev 1 IbDev 1 Port 1 qpn 33 mtu 3 GID 3 (0/{GIDS['a']})", gpu=2)
    found = flows(tmp_path, *ranks, send, channel("b", 0, 0, 1, "receive", 1), opened)
    assert found.source_qpn_F.tolist() == [33]


def test_other_networks_are_counted(tmp_path: Path) -> None:
    """Sockets carry no RoCE."""
    socket = says("a", "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0")
    connections, notes = find_connections(read(tmp_path, *BOTH, socket))
    assert (connections, notes) == ((), ("channels over NET/Socket, left out: 1",))


def test_two_communicators_keep_their_ranks_apart(tmp_path: Path) -> None:
    """Rank 1 is on b in one communicator and on c in the other; the process's latest Init START tells which."""
    second = COMMUNICATOR.replace("1f82", "2f82")
    lines = [*BOTH, channel("a", 0, 0, 1, "send")]
    lines += [line.replace(COMMUNICATOR, second) for line in (*starts("a", 0), *starts("c", 1))]
    found = flows(tmp_path, *lines, channel("a", 0, 0, 1, "send"))
    assert found.destination_host_F == ("b", "c")


def test_the_wording_before_nccl_2_7_gives_the_same_flows(tmp_path: Path) -> None:
    """Its channels are called rings; 0 of them were read."""
    old = [line.replace("Channel", "Ring").replace("/0 :", " :") for line in ONE_CHANNEL]
    assert [flows(tmp_path, *old).label(row) for row in range(1)] == ["a/mlx5_0 to b/mlx5_1"]


def test_messages_that_are_not_read_are_noted(tmp_path: Path) -> None:
    """And where there is no flow, what the log holds instead."""
    found = flows(tmp_path, *BOTH, says("a", "Ring 00 by rank 0 via NET/IB/0"))
    assert found.notes == (
        f"messages about channels in a wording that is not read: 1, the first {tmp_path}/nccl.log:5: "
        "Ring 00 by rank 0 via NET/IB/0",
    )
    assert flows(tmp_path, *BOTH).notes == ("messages of NCCL: 4, of which channels inside a host: 0",)


def test_the_plug_in_with_sharp_opens_queue_pairs_too(tmp_path: Path) -> None:
    """NET/IBext_v8 of NVIDIA's containers, over the same devices."""
    lines = [line.replace("NET/IB/", "NET/IBext_v8/") for line in ONE_CHANNEL]
    assert flows(tmp_path, *lines).label(0) == "a/mlx5_0 to b/mlx5_1"
