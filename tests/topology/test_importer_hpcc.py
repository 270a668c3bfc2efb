"""HPCC's and SimAI's topology text: the header rules, and in SimAI's form servers and rails come from it."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers.hpcc import is_hpcc, load_hpcc

HPCC = "4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 1us 0\n3 0 25Gbps 500ns 0\n0 9 this is not read\nsrc dst rate\n"
SIMAI = (
    "8 2 2 2 9 A100\n4 5\n6 7\n"  # GPUs 0 to 3 in two servers, NVSwitches 4 and 5, switches 6 and 7
    "0 4 2400Gbps 25ns 0\n1 4 2400Gbps 25ns 0\n2 5 2400Gbps 25ns 0\n3 5 2400Gbps 25ns 0\n"
    "0 6 200Gbps 500ns 0\n1 7 200Gbps 500ns 0\n2 6 200Gbps 500ns 0\n3 7 200Gbps 500ns 0\n"
    "6 7 400Gbps 500ns 0.01\n"
)


@pytest.fixture
def load(tmp_path: Path):
    """Read a topology given as text."""

    def load_text(text: str) -> Fabric:
        path = tmp_path / "topology.txt"
        path.write_text(text)
        return load_hpcc([path])

    return load_text


def test_the_header_rules(load) -> None:
    """Three links are declared, so the fourth and the note below it are not read."""
    imported = load(HPCC)
    assert imported.node_name_N == ("host1", "host2", "host3", "switch0")
    assert imported.port_rate_bps_P.tolist() == [10**11] * 4 + [25 * 10**9] * 2
    assert imported.port_delay_ps_P.tolist() == [10**6] * 4 + [500_000] * 2
    assert imported.link_label(4) == "host3:nic0 -> switch0:port2"
    assert imported.notes == ("lines after the 3 links of the header, not read: 2",)


def test_simai_gpus_become_nics_of_their_server(load) -> None:
    """GPU k of a server is rail k; NVLinks are skipped and the lossy link is noted."""
    imported = load(SIMAI)
    fabric = imported
    assert fabric.node_name_N == ("host0", "host1", "switch6", "switch7")
    assert fabric.nic_rail_C.tolist() == [0, 1, 0, 1]
    assert [fabric.link_label(port) for port in (0, 2)] == [
        "host0:gpu0-nic0 -> switch6:port0",
        "host0:gpu1-nic0 -> switch7:port0",
    ]
    assert imported.notes == (
        "links inside a server, skipped: 4",
        "links with an error rate, which is left out: 1",
    )


def test_switches_may_stand_on_one_line(load) -> None:
    """SimAI's generator writes NVSwitches and switches together."""
    assert load(SIMAI.replace("4 5\n6 7\n", "4 5 6 7\n")).num_ports == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 1\n", "topology.txt:1: '4 1'\n  allowed: nodes switches links, or"),
        ("9 1 3\n0\n\n\n", "topology.txt:1: 9 nodes and 3 links\n  allowed: at most two nodes for each link"),
        ("4 2 2\n0\n", "topology.txt:1: 2 switches, and the numbers of 1\n"),
        ("4 1 3\n0\n0 1 1Gbps 1us 0\n", "topology.txt:1: 3 links, and 1 lines\n"),
        ("4 1 999\n0\n0 1 1Gbps 1us 0\n", "topology.txt:1: 999 links, and 3 lines\n"),
        ("999999999 1 999999999\n", "topology.txt:1: 999999999 nodes\n  allowed: at most 262144\n  next: give a part"),
        ("4 1 2\n7\n", "topology.txt:2: the switch '7'\n  allowed: each once, from 0 to 3"),
        ("2 1 1\n0\n0 5 1Gbps 1us 0\n", "topology.txt:3: a link to the node 5\n  allowed: 0 to 1"),
        ("2 1 1\n0\n0 1 1Gbps 1parsec 0\n", "topology.txt:3: '1parsec': 'parsec' is no unit of duration\n"),
        ("2 1 1\n0\n0 1 1Gbps\n", "topology.txt:3: '0 1 1Gbps'\n  allowed: from to rate delay error-rate"),
    ],
)
def test_mistakes_have_their_line(load, tmp_path: Path, text: str, message: str) -> None:
    """What is found, and what may stand there."""
    with pytest.raises(InputError) as raised:
        load(text)
    assert message in str(raised.value)


def test_the_format_is_told_from_the_header(tmp_path: Path) -> None:
    """HPCC's flow lists, which lie beside its topologies, begin with one number."""
    for text, is_one in ((HPCC, True), (SIMAI, True), ("2\n2 1 3 100 200000 2\n", False), ("1 2 3 words\n", False)):
        path = tmp_path / "file"
        path.write_text(text)
        assert is_hpcc(path) is is_one


def test_a_rate_that_no_link_has_is_refused(load) -> None:
    """With the bound."""
    with pytest.raises(InputError, match="allowed: above 0, up to 100 Tbps"):
        load(HPCC.replace("25Gbps", "2147483648Gbps"))
