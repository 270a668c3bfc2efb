"""Public topology files of other projects give what their authors drew."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.importers import IMPORTERS, import_fabric
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import route

pytestmark = pytest.mark.real


def counts(fabric: Fabric) -> tuple[int, int, int, int]:
    """Return nodes, hosts, links, and links between switches."""
    is_switch_P = (fabric.node_kind_N == NodeKind.SWITCH)[fabric.port_node_P]
    num_trunks = int((is_switch_P & is_switch_P[fabric.port_peer_P]).sum()) // 2
    num_hosts = int((fabric.node_kind_N == NodeKind.HOST).sum())
    return fabric.num_nodes, num_hosts, fabric.num_ports // 2, num_trunks


def test_containerlab_three_tier_clos(real_data: Path) -> None:
    """clos02: 14 nodes of which 4 are clients, 16 links, 12 between switches; tiers from the cabling."""
    fabric = import_fabric([real_data / "clab" / "clos02.clab.yml"])
    assert counts(fabric) == (14, 4, 16, 12)
    assert np.bincount(fabric.node_tier_N).tolist() == [4, 4, 4, 2]


def test_containerlab_clos_routes_between_pods(real_data: Path) -> None:
    """client1 to client4 climbs to a superspine: 6 links."""
    fabric = import_fabric([real_data / "clab" / "clos02.clab.yml"])
    path = route(fabric, make_queue_pairs([0], [3]), HashSpec()).port_QDH[0, 0]
    assert (len(path), fabric.node_tier_N[fabric.port_node_P[path]].tolist()) == (6, [0, 1, 2, 3, 2, 1])


def test_containerlab_both_link_forms(real_data: Path) -> None:
    """2-linux-nodes: three parallel links in two forms; host, mgmt-net and dummy links are skipped and noted."""
    imported = import_fabric([real_data / "clab" / "01-linux-nodes.clab.yml"])
    assert counts(imported) == (3, 3, 3, 0)
    assert [imported.link_label(port) for port in (0, 2, 4)] == [
        "l1:eth1 -> l2:some1",
        "l1:eth2 -> l2:eth2",
        "l1:eth3 -> l2:eth3",
    ]
    skipped = [note.rpartition(": ")[2] for note in imported.notes[:3]]
    assert skipped == [f"a link of type {kind} skipped" for kind in ("host", "mgmt-net", "dummy")]


def test_containerlab_mixed_vendors(real_data: Path) -> None:
    """A SONiC leaf among SR Linux: 5 nodes, 4 links, 2 between switches."""
    fabric = import_fabric([real_data / "clab" / "basic-clab-sonic-l2-evpn.clab.yml"])
    assert counts(fabric) == (5, 2, 4, 2)


def test_sonic_tor(real_data: Path) -> None:
    """T0 S6000: 28 neighbours at 40G, 24 servers on 5 m and 4 leaves on 40 m."""
    fabric = import_fabric([real_data / "sonic" / "t0-s6000.config_db.json"])
    assert counts(fabric) == (29, 24, 28, 4)
    assert set(fabric.port_rate_bps_P.tolist()) == {40_000_000_000}
    delays, links = np.unique(fabric.port_delay_ps_P, return_counts=True)
    assert dict(zip(delays.tolist(), (links // 2).tolist(), strict=True)) == {25_000: 24, 200_000: 4}
    assert fabric.node_tier_N[fabric.node_name_N.index("str-s6000-acs-14")] == 1
    assert fabric.node_tier_N[fabric.node_name_N.index("ARISTA01T1")] == 2


def test_sonic_flat_tables(real_data: Path) -> None:
    """One ASIC of a multi-ASIC box: a single neighbour, a server, on Ethernet4."""
    fabric = import_fabric([real_data / "sonic" / "asic0.config_db.json"])
    assert counts(fabric) == (2, 1, 1, 0)
    assert fabric.link_label(0) == "sonic:Ethernet4 -> Serverss0:eth0"


def test_sonic_buffer_tables_are_no_switch(real_data: Path) -> None:
    """A file of buffer tables has no hostname, and the message says what to take instead."""
    with pytest.raises(InputError, match=r"next: take the file from /etc/sonic/config_db\.json of the switch"):
        import_fabric([real_data / "sonic" / "buffers-mellanox4600c-t1-dynamic.json"])


def outcome(path: Path, name: str) -> Fabric | InputError:
    """Return what reading a file in a format comes to."""
    try:
        return import_fabric([path], name)
    except InputError as error:
        return error


@pytest.mark.parametrize("name", IMPORTERS)
def test_no_public_file_is_a_traceback(real_data: Path, name: str) -> None:
    """Every file of the collection, whatever it is, in every format: a fabric or an InputError."""
    paths = [path for path in sorted(real_data.rglob("*")) if path.is_file()]
    assert paths
    assert all(isinstance(outcome(path, name), Fabric | InputError) for path in paths)
