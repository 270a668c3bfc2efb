"""Real flows on a fabric: ends found by name and address, source ports as observed, and what is missing said aloud."""

import json
from pathlib import Path

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.flows import UNKNOWN, Endpoint, Flow, ObservedFlows, collect_flows
from fabrictune.foundation.rocev2 import BaseTransportHeader, Opcode, pack_packet
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.scenario.observed import DeviceName, EndpointName, ObservedSpec, make_observed
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.queue_pairs import make_queue_pairs

HOST0, HOST2 = Endpoint(host="host0", device="nic0"), Endpoint(host="host2", device="nic1")


@pytest.fixture
def fabric() -> Fabric:
    """Four hosts of two NICs: NIC 2 h + r is `host<h>:nic<r>`, at 10.0.0.1 and upwards."""
    return build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=2, tiers=2))


def spec_for(tmp_path: Path, *rows: Flow, notes: tuple[str, ...] = (), **settings: object) -> ObservedSpec:
    """Return a spec that reads these flows from a file."""
    path = tmp_path / "flows.parquet"
    collect_flows(rows, notes).write(path)
    return ObservedSpec(files=(path,), **settings)  # type: ignore[arg-type]


def made(spec: ObservedSpec, fabric: Fabric) -> tuple[QueuePairs, TrafficTrace]:
    return make_observed(spec, fabric, 0)


def ends(queue_pairs: QueuePairs) -> list[tuple[int, int]]:
    return list(zip(queue_pairs.source_nic_Q.tolist(), queue_pairs.destination_nic_Q.tolist(), strict=True))


def seen(source: Endpoint, destination: Endpoint, *, num_bytes: int = UNKNOWN, first_ns: int = UNKNOWN) -> Flow:
    """Return a flow whose numbers and port are known."""
    return Flow(
        source=source,
        destination=destination,
        source_qpn=7,
        destination_qpn=8,
        source_port=50000,
        num_bytes=num_bytes,
        first_ns=first_ns,
    )


def test_ends_are_found_by_name_host_and_address(tmp_path: Path, fabric: Fabric) -> None:
    """host0:nic0 is NIC 0, host2:nic1 NIC 5; 10.0.0.4 is NIC 3, and a name given in the scenario goes before all."""
    spec = spec_for(
        tmp_path,
        seen(HOST0, HOST2),
        seen(Endpoint(ipv4=0x0A000004), HOST0),
        seen(Endpoint(host="host0", device="mlx5_9"), Endpoint(host="gpu-17")),
        seen(Endpoint(host="host1", device="mlx5_1"), Endpoint(ipv4=0xC0A84604)),
        endpoints=(
            EndpointName(observed="host0/mlx5_9", nic="host3:nic0"),
            EndpointName(observed="gpu-17", nic="host3:nic1"),
            EndpointName(observed="192.168.70.4", nic="host0:nic1"),
        ),
        devices=(DeviceName(device="mlx5_1", port="nic1"),),
    )
    assert ends(made(spec, fabric)[0]) == [(0, 5), (3, 0), (6, 7), (3, 1)]


def test_a_host_with_one_nic_needs_no_device(tmp_path: Path) -> None:
    """Whatever the device is called."""
    fabric = build_clos(ClosSpec(num_hosts=2, hosts_per_tor_set=2, nics_per_host=1, tiers=2))
    spec = spec_for(tmp_path, seen(Endpoint(host="host1", device="mlx5_5"), Endpoint(host="host0")))
    assert ends(made(spec, fabric)[0]) == [(1, 0)]


def test_what_was_observed_stands_exactly(tmp_path: Path, fabric: Fabric) -> None:
    """Numbers, source port, bytes, and the start relative to the first flow: 2 us are 2,000,000 ps."""
    spec = spec_for(
        tmp_path,
        seen(HOST0, HOST2, num_bytes=4096, first_ns=10**18),
        seen(HOST2, HOST0, num_bytes=100, first_ns=10**18 + 2000),
        priority=5,
    )
    queue_pairs, traffic = made(spec, fabric)
    assert (queue_pairs.source_qpn_Q.tolist(), queue_pairs.destination_qpn_Q.tolist()) == ([7, 7], [8, 8])
    assert (queue_pairs.source_port_Q.tolist(), queue_pairs.priority_Q.tolist()) == ([50000, 50000], [5, 5])
    assert (traffic.bytes_N.tolist(), traffic.start_ps_N.tolist()) == ([4096, 100], [0, 2_000_000])


def test_flows_of_acknowledgements_alone_give_no_queue_pair(tmp_path: Path, fabric: Fabric) -> None:
    """They are the way back of another."""
    spec = spec_for(tmp_path, seen(HOST0, HOST2, num_bytes=4096), seen(HOST2, HOST0, num_bytes=0))
    assert ends(made(spec, fabric)[0]) == [(0, 5)]


def test_what_was_not_observed_is_made_up_and_warned_of(tmp_path: Path, fabric: Fabric) -> None:
    """Numbers as an adapter would count, the port from them, the size from the scenario; the file's own notes too."""
    flow = Flow(source=HOST0, destination=HOST2)
    spec = spec_for(tmp_path, flow, flow, notes=("cut short",), message_bytes=5)
    queue_pairs, traffic = made(spec, fabric)
    expected = make_queue_pairs([0, 0], [5, 5])
    assert np.array_equal(queue_pairs.source_port_Q, expected.source_port_Q)
    assert np.array_equal(queue_pairs.source_qpn_Q, expected.source_qpn_Q)
    assert traffic.bytes_N.tolist() == [5, 5]
    assert traffic.notes == (
        "cut short",
        "flows whose source port was not observed and is made up: 2 of 2",
        "flows whose bytes were not observed, taken as 5 B each: 2 of 2",
    )


def test_half_known_numbers_keep_the_known_half(tmp_path: Path, fabric: Fabric) -> None:
    """NCCL's later logs tell the sender's number alone."""
    spec = spec_for(tmp_path, Flow(source=HOST0, destination=HOST2, source_qpn=0x45))
    queue_pairs, _ = made(spec, fabric)
    assert queue_pairs.source_qpn_Q.tolist() == [0x45]
    assert queue_pairs.destination_qpn_Q.tolist() == make_queue_pairs([0], [5]).destination_qpn_Q.tolist()


def test_every_end_that_is_nowhere_is_reported_once(tmp_path: Path, fabric: Fabric) -> None:
    """A host almost of the fabric, a device its host does not have, an address, and an end without anything."""
    rows = [
        Flow(source=Endpoint(host="hst0"), destination=Endpoint(host="host1", device="nic7"), origin="a.log:1"),
        Flow(source=Endpoint(ipv4=0xC0A84604), destination=Endpoint(host="hst0"), origin="a.log:2"),
        Flow(source=Endpoint(), destination=HOST0, origin="a.log:3"),
    ]
    with pytest.raises(InputError) as caught:
        made(spec_for(tmp_path, *rows), fabric)
    assert str(caught.value) == (
        "a.log:1: hst0: no NIC of the fabric 'clos-4x2'\n  did you mean 'host0'?\n"
        '  next: under traffic: endpoints: [{observed: "hst0", nic: "host:port"}]\n'
        "a.log:2: 192.168.70.4: no NIC of the fabric 'clos-4x2'\n"
        '  next: under traffic: endpoints: [{observed: "192.168.70.4", nic: "host:port"}]\n'
        "a.log:3: unknown: no NIC of the fabric 'clos-4x2'\n"
        "a.log:1: host1/nic7: the host has no NIC of that name\n  did you mean 'host1:nic1'?\n"
        "  allowed: nic0, nic1\n  next: under traffic: devices: [{device: nic7, port: nic1}]"
    )


def test_hundreds_of_ends_that_are_nowhere_are_counted(tmp_path: Path, fabric: Fabric) -> None:
    """Twenty are named."""
    rows = [Flow(source=Endpoint(host=f"node{number}"), destination=HOST0) for number in range(300)]
    with pytest.raises(InputError) as caught:
        made(spec_for(tmp_path, *rows), fabric)
    assert len(caught.value.mistakes) == 21
    assert caught.value.mistakes[-1].found == "280 more ends that are no NICs of the fabric"


def test_files_without_flows_and_times_out_of_range_are_refused(tmp_path: Path, fabric: Fabric) -> None:
    """An empty table says why it is empty; a span of 300 years does not fit the event clock."""
    with pytest.raises(InputError, match="no flow that carries payload between hosts\n  next: nothing leaves its host"):
        made(spec_for(tmp_path, notes=("nothing leaves its host",)), fabric)
    rows = [seen(HOST0, HOST2, first_ns=first_ns) for first_ns in (0, 2**63 - 1)]
    with pytest.raises(InputError, match="times lie too far apart\n  allowed: 106 days"):
        made(spec_for(tmp_path, *rows), fabric)


SCENARIO = """name: seen
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 2, tiers: 2}
traffic:
  workload: observed
"""


def write_scenario(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "seen.yaml"
    path.write_text(SCENARIO + "".join(f"  {line}\n" for line in lines))
    return path


def capture() -> bytes:
    """Return a pcap with one packet from 10.0.0.1 (host0:nic0) to 10.0.0.5 (host2:nic0), then half a record."""
    header = BaseTransportHeader(opcode=Opcode.WRITE_ONLY, destination_qpn=0x48, psn=0)
    frame = pack_packet(
        header, source_ipv4=0x0A000001, destination_ipv4=0x0A000005, source_port=0xD368, payload=b"x" * 64
    )
    head = bytes.fromhex("d4c3b2a1020004000000000000000000") + (2**18).to_bytes(4, "little") + bytes([1, 0, 0, 0])
    return head + bytes(8) + len(frame).to_bytes(4, "little") * 2 + frame + bytes(9)


LOG = """\
[2026-01-31 23:59:59] host0:1:2 [0] NCCL INFO NET/IB : Using [0]nic0:1/RoCE [1]nic1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>
host0:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 80 commId 0x5 - Init START
host2:1:2 [0] NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 80 commId 0x5 - Init START
host0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0
host0:1:9 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 69 mtu 3 GID 3 (0/1064A8C0FFFF0000) fifoRkey=0x1
host0:1:9 [0] NCCL INFO NET/IB: IbDev 0 Port 1 qpn 72 set_ece={supported=0, vendor_id=0x0}
"""
GRAPH = """<graphs version="1"><graph id="0" pattern="4" crossnic="0" speedintra="20" speedinter="20">
<channel><net dev="0"/><gpu dev="0"/><net dev="0"/></channel></graph></graphs>
"""
LISTINGS = {
    host: f'[{{"ifname": "nic0", "port": 1, "lqpn": {own}, "rqpn": {other}, "type": "RC", "state": "RTS", "pid": 3}}]'
    for host, own, other in (("host0", 69, 72), ("host2", 72, 69))
}


def analyzed(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the number of flows that `ecmp analyze` found, and what it warned of."""
    assert run(["ecmp", "analyze", str(path), "--out", str(tmp_path / "record"), "--json"]) == 0
    shown = capsys.readouterr()
    return json.loads(shown.out)["num_flows"], shown.err


def test_a_cut_capture_is_analyzed_up_to_the_cut_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Addresses of the fabric's own NICs need no naming; the warning is one line."""
    (tmp_path / "cut.pcap").write_bytes(capture())
    num_flows, warnings = analyzed(write_scenario(tmp_path, "files: [cut.pcap]"), tmp_path, capsys)
    assert num_flows == 1
    assert warnings == f"warning: {tmp_path}/cut.pcap: cut short: the last 9 bytes are part of a record\n"


def test_a_log_is_analyzed_with_the_ports_it_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One side's log of NCCL 2.25, with both numbers."""
    (tmp_path / "nccl.log").write_text(LOG)
    num_flows, warnings = analyzed(write_scenario(tmp_path, "files: [nccl.log]"), tmp_path, capsys)
    assert num_flows == 1
    assert warnings == (
        "warning: channels logged by one side alone, whose other end is taken to use the same device: 1\n"
        "warning: flows whose bytes were not observed, taken as 1 MB each: 1 of 1\n"
    )


def test_listings_of_two_hosts_are_analyzed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A flow from each end, whose bytes a listing does not have."""
    for host, text in LISTINGS.items():
        (tmp_path / f"{host}.json").write_text(text)
    scenario = write_scenario(tmp_path, "files: [host0.json, host2.json]")
    warning = "warning: flows whose bytes were not observed, taken as 1 MB each: 2 of 2\n"
    assert analyzed(scenario, tmp_path, capsys) == (2, warning)


def test_a_graph_is_analyzed_over_the_hosts_of_its_ring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three hosts in a ring, two queue pairs a connection: six flows."""
    (tmp_path / "graph.xml").write_text(GRAPH)
    lines = ("hosts: [host0, host1, host2]", "qps_per_connection: 2", "devices: [{device: net0, port: nic0}]")
    num_flows, warnings = analyzed(write_scenario(tmp_path, "files: [graph.xml]", *lines), tmp_path, capsys)
    assert num_flows == 6
    assert warnings == (
        "warning: flows whose source port was not observed and is made up: 6 of 6\n"
        "warning: flows whose bytes were not observed, taken as 1 MB each: 6 of 6\n"
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("files: [nowhere.pcap]",), "{}/nowhere.pcap: no such file\n  next: check the path\n"),
        (("files: []",), "{}/seen.yaml:5: traffic.files: no file\n  allowed: one or more\n"),
        (
            ("files: [seen.yaml]",),
            "{0}/seen.yaml:5: traffic.files: {0}/seen.yaml: not one of the formats that are read\n"
            "  allowed: capture, flows, nccl_graph, nccl_log, rdma, simccl\n  next: name the format\n",
        ),
        (
            ("files: [seen.yaml]", "format: captures"),
            "{}/seen.yaml:6: traffic.format: unknown format 'captures'\n  did you mean 'capture'?\n"
            "  allowed: capture, flows, nccl_graph, nccl_log, rdma, simccl\n",
        ),
        (
            ("files: [graph.xml]", "hosts: [host0]"),
            "{}/seen.yaml:6: traffic.hosts: 1 hosts\n  allowed: two or more: a graph file knows its own host alone\n",
        ),
        (
            ("files: [flows.parquet]", 'endpoints: [{observed: node1, nic: "host9:nic0"}]'),
            "{}/seen.yaml:6: traffic.endpoints: 'node1' is said to be 'host9:nic0', which is no NIC of the fabric\n"
            "  did you mean 'host3:nic0'?\n",
        ),
    ],
    ids=["missing", "none", "unknown", "misspelled", "one host", "misnamed NIC"],
)
def test_mistakes_name_the_line_of_the_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: tuple[str, ...], message: str
) -> None:
    """Or the file in which they lie."""
    (tmp_path / "graph.xml").write_text(GRAPH)
    collect_flows([seen(HOST0, HOST2)]).write(tmp_path / "flows.parquet")
    assert run(["ecmp", "analyze", str(write_scenario(tmp_path, *lines))]) == 2
    assert capsys.readouterr().err == message.format(tmp_path)


def test_observed_flows_are_unknown_where_nothing_was_seen(tmp_path: Path) -> None:
    """The table that the scenario reads is the readers' own."""
    spec_for(tmp_path, Flow(source=HOST0, destination=HOST2))
    assert ObservedFlows.read(tmp_path / "flows.parquet").bytes_F.tolist() == [UNKNOWN]


def test_names_that_no_flow_has_are_said(tmp_path: Path, fabric: Fabric) -> None:
    """An address mistyped, and a device that only another cluster's hosts have."""
    endpoints = (
        EndpointName(observed="192.168.70.4", nic="host1:nic0"),
        EndpointName(observed="10.9.9.9", nic="host2:nic0"),
    )
    devices = (DeviceName(device="mlx5_9", port="nic0"),)
    flow = seen(HOST0, Endpoint(ipv4=0xC0A84604), num_bytes=10)
    _, traffic = made(spec_for(tmp_path, flow, endpoints=endpoints, devices=devices), fabric)
    assert traffic.notes == (
        "traffic.endpoints that no observed flow has, without effect: 1 (first '10.9.9.9')",
        "traffic.devices that no observed flow has, without effect: 1 (first 'mlx5_9')",
    )
