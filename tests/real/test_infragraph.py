"""InfraGraph's own service takes the infrastructures that are written: every port, link and centre, all joined.

`pip install infragraph` brings it; it is no extra, since nothing but this asks it.
"""

import networkx as nx
import pytest

from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.exporters import EXPORTERS
from fabrictune.topology.fabric import Fabric

pytestmark = pytest.mark.real
PODS = build_clos(ClosSpec(num_hosts=8, hosts_per_tor_set=2, tor_sets_per_pod=2, tiers=3, nics_per_host=2))
TREE = build_fat_tree(FatTreeSpec(radix=4))


@pytest.mark.parametrize("fabric", [PODS, TREE], ids=["pods", "fat tree"])
def test_its_service_unfolds_the_fabric(fabric: Fabric) -> None:
    """A graph node a port and one more a device; an edge a link, and one a port to the middle of its device."""
    service_module = pytest.importorskip("infragraph.infragraph_service", reason="infragraph is not installed")
    service = service_module.InfraGraphService()
    service.set_graph(EXPORTERS["infragraph"](fabric))
    graph = service.get_networkx_graph()
    assert graph.number_of_nodes() == fabric.num_ports + fabric.num_nodes
    assert graph.number_of_edges() == fabric.num_ports // 2 + fabric.num_ports
    assert nx.is_connected(graph)
    links = [data for *_, data in graph.edges(data=True) if data["link"] != "internal"]
    assert {data["bandwidth"].partition(" ")[2] for data in links} == {"Gbps"}
    path = nx.shortest_path(graph, "host.0.nic.0", "host.7.nic.0")
    assert any(".asic." in node for node in path), "through switches"
