"""Traffic of other simulators, on their own topologies, in public files."""

from pathlib import Path

import pytest

from fabrictune.netsim.workloads.connection_matrix import read_connection_matrix
from fabrictune.netsim.workloads.flow_lists import flows_on_fabric
from fabrictune.netsim.workloads.ns3_flows import read_ns3_flows
from fabrictune.topology.importers import import_fabric

pytestmark = pytest.mark.real


def test_htsims_incast(real_data: Path) -> None:
    """15 flows of 2 MB to node 15."""
    fabric = import_fabric([real_data / "sim" / "leaf_spine_tiny.topo"])
    _, trace = flows_on_fabric(read_connection_matrix(real_data / "sim" / "incast.cm"), fabric, priority=3)
    assert trace.source_N.tolist() == list(range(15))
    assert set(trace.destination_N.tolist()) == {15}
    assert int(trace.bytes_N.sum()) == 30_000_000
    assert not trace.start_ps_N.any()


def test_hpccs_two_flows(real_data: Path) -> None:
    """Hosts 2 and 3 to host 1: node 0 of its topology is the switch. The head's count rules over 259 lines more."""
    fabric = import_fabric([real_data / "sim" / "hpcc_topology.txt"])
    queue_pairs, trace = flows_on_fabric(read_ns3_flows(real_data / "sim" / "hpcc_flow.txt"), fabric, priority=0)
    ends = [
        (fabric.nic_label(a), fabric.nic_label(b)) for a, b in zip(trace.source_N, trace.destination_N, strict=True)
    ]
    assert ends == [("host2:nic0", "host1:nic0"), ("host3:nic0", "host1:nic0")]
    assert (trace.bytes_N.tolist(), trace.start_ps_N.tolist()) == ([200_000_000] * 2, [0, 0])
    assert queue_pairs.priority_Q.tolist() == [3, 3]
