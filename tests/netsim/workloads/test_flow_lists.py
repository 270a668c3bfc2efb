"""Flow lists of htsim and ns-3 become transfers with the sizes, starts and dependencies that their files say."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError, TraceError
from fabrictune.netsim.workloads.connection_matrix import is_connection_matrix, read_connection_matrix
from fabrictune.netsim.workloads.flow_lists import flows_on_fabric
from fabrictune.netsim.workloads.ns3_flows import is_ns3_flows, read_ns3_flows
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric

GOLDEN = Path(__file__).parents[2] / "golden" / "flows"
CHAIN, FLOWS = GOLDEN / "chain.cm", GOLDEN / "flow.txt"


def clos(num_hosts: int, nics_per_host: int = 1) -> Fabric:
    """Return hosts host0, host1, ... behind ToRs."""
    return build_clos(ClosSpec(num_hosts=num_hosts, hosts_per_tor_set=2, nics_per_host=nics_per_host, tiers=2))


def changed(tmp_path: Path, original: Path, old: str, new: str) -> Path:
    """Return a copy of a file with other text."""
    path = tmp_path / original.name
    text = original.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def test_a_connection_matrix_keeps_sizes_starts_and_triggers() -> None:
    """Flow 2 waits for both that fire the barrier, flow 3 for flow 2; starts are picoseconds."""
    assert is_connection_matrix(CHAIN)
    queue_pairs, trace = flows_on_fabric(read_connection_matrix(CHAIN), clos(4), priority=3)
    assert trace.source_N.tolist() == queue_pairs.source_nic_Q.tolist() == [0, 2, 1, 3]
    assert trace.destination_N.tolist() == [1, 3, 2, 0]
    assert trace.bytes_N.tolist() == [1000, 2000, 3000, 4000]
    assert trace.start_ps_N.tolist() == [0, 2_000_000, 0, 0]
    assert trace.dependencies.offset_N1.tolist() == [0, 0, 0, 2, 3]
    assert trace.dependencies.row_D.tolist() == [0, 1, 2]
    assert set(queue_pairs.priority_Q.tolist()) == {3}
    assert trace.notes == (
        f"{CHAIN}: flows that a multishot trigger starts, taken as started by the flow of the same place: 1",
        f"{CHAIN}: triggers fired by the receiver, taken as fired when the flow has ended: 1",
        f"{CHAIN}: flows with a priority of htsim's queues, which is left out: 1",
        f"{CHAIN}: failures of switches and links, left out: 1",
        f"{CHAIN}: endpoints of the file are NICs of the fabric, in their order",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Connections 4", "Connections 5", "1: Connections 5, and 4 in the file\n  allowed: the same number"),
        ("0->1 id", "0->4 id", "6: a flow from 0 to 4\n  allowed: nodes from 0 to 3"),
        ("0->1 id", "0->0 id", "6: a flow from 0 to itself\n  allowed: two different nodes"),
        ("size 1000", "size 0", "6: a flow of size 0, which never ends\n  allowed: a size in bytes"),
        ("start 0 size", "size", "6: a flow with neither\n  allowed: a start or a trigger"),
        ("trigger 2 size", "trigger 2 start 0 size", "9: a flow with both\n  allowed: a start or a trigger"),
        ("prio 7", "colour 7", "7: 'colour 7'\n  allowed: id, start, size, trigger, send_done_trigger, "),
        ("count 2", "count 3", "6: trigger 1, a barrier that 2 flows fire\n  allowed: 3"),
        ("barrier count 2", "oneshot", "6: trigger 1, a oneshot that 2 flows fire\n  allowed: 1"),
        (" send_done_trigger 2", "", "9: trigger 2, a multishot that 0 flows fire and 1 wait for"),
        ("trigger id 2", "trigger id 3", "8: trigger 2, which has no line of its own"),
        ("failure", "failed", "12: 'failed switch_type TOR switch_id 0 link_id 1'"),
        ("start 2000000", "start soon", "7: start 'soon'\n  allowed: picoseconds, up to 1000000000000000"),
    ],
)
def test_a_matrix_that_htsim_would_not_run_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """With the line; what a file says of itself has to be true."""
    path = changed(tmp_path, CHAIN, old, new)
    with pytest.raises(TraceError) as caught:
        read_connection_matrix(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_ns3_flows_have_priorities_and_starts_from_the_first() -> None:
    """2.000001 s is 1 us after the first, at 2 s; a line of five numbers has no port."""
    assert is_ns3_flows(FLOWS)
    queue_pairs, trace = flows_on_fabric(read_ns3_flows(FLOWS), clos(4), priority=0)
    assert list(zip(trace.source_N.tolist(), trace.destination_N.tolist(), strict=True)) == [(0, 1), (2, 1), (3, 2)]
    assert trace.bytes_N.tolist() == [200_000, 300_000, 400_000]
    assert trace.start_ps_N.tolist() == [0, 1_000_000, 500_000_000_000]
    assert queue_pairs.priority_Q.tolist() == [3, 5, 3]
    assert trace.notes == (
        f"{FLOWS}: lines after the 3 flows of the head, not read: 1",
        f"{FLOWS}: the first flow starts at 2 s; starts are counted from there",
        f"{FLOWS}: endpoints of the file are the hosts of that number",
    )


def test_hosts_with_several_nics_make_numbers_those_of_nics() -> None:
    """Endpoint 3 of 2 hosts with 2 NICs each is the second NIC of the second host."""
    _, trace = flows_on_fabric(read_ns3_flows(FLOWS), clos(2, nics_per_host=2), priority=0)
    assert trace.source_N.tolist() == [0, 2, 3]
    assert trace.notes[-1] == f"{FLOWS}: endpoints of the file are NICs of the fabric, in their order"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3\n0", "4\n0", "6: 'source destination priority port bytes start'\n  allowed: source"),
        ("3 2 3 400000 2.5\n\nsource destination priority port bytes start\n", "", "1: 3 flows, and 2 lines"),
        ("3\n0", "0\n0", "1: '0' flows\n  allowed: 1 to 2000000, a line for each"),
        ("0 1 3 100", "1 1 3 100", "2: a flow from 1 to itself\n  allowed: two different hosts"),
        ("0 1 3 100 200000 2", "0 1 3 100 0 2", "2: '0 1 3 100 0 2'\n  allowed: source destination priority port "),
        ("0 1 3 100", "0 1 8 100", "2: priority group 8\n  allowed: 0 to 7"),
        (
            "200000 2",
            "200000 two",
            "2: '0 1 3 100 200000 two'\n  allowed: source destination priority port bytes start",
        ),
        ("0 1 3 100", "0 1", "2: '0 1 200000 2'\n  allowed: source destination priority port bytes start"),
    ],
)
def test_a_flow_file_that_is_broken_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """With the line."""
    path = changed(tmp_path, FLOWS, old, new)
    with pytest.raises(InputError) as caught:
        read_ns3_flows(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_endpoints_that_the_fabric_lacks_are_refused() -> None:
    """Neither file says which hosts its numbers are; those that nobody has are a mistake."""
    with pytest.raises(TraceError) as caught:
        flows_on_fabric(read_connection_matrix(CHAIN), clos(2), priority=3)
    assert str(caught.value) == (
        f"{CHAIN}: endpoint 3, which the fabric does not have\n"
        "  allowed: 2 endpoints: endpoints of the file are NICs of the fabric, in their order"
    )
