"""Files that people give as a topology and no importer reads: each is named, with what to give instead."""

import gzip
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.importers import import_fabric

NODES = 'Switch\t: 0x0002c90000000010 ports 36 devid 0xcb20 vendid 0x2c9 "leaf1"\n'
GIVE_IBNETDISCOVER = "give the output of `ibnetdiscover`"


@pytest.mark.parametrize(
    ("text", "found", "next_step"),
    [
        (
            NODES,
            "a list of nodes without links (ibnetdiscover -l, ibswitches, ibhosts)",
            f"{GIVE_IBNETDISCOVER} without options",
        ),
        ("START_NODES\nNodeDesc,NumPorts\n", "a file of ibdiagnet or a subnet list of OpenSM", GIVE_IBNETDISCOVER),
        (
            '<system version="1"><cpu numaid="0"/></system>',
            "NCCL's topology or graph of one host, without the switches between hosts",
            "give a file that lists the switches and their links",
        ),
        (
            'graph dc1 {\n  "leaf1":"swp1" -- "spine1":"swp1"\n}\n',
            "a Graphviz file",
            "write it as GraphML, or write its links as a cabling list (*.csv), a row for each cable",
        ),
        (
            "Nodes 16\nConnections 1\n0->15 start 0\n",
            "a connection matrix of htsim, which is traffic",
            "give htsim's *.topo file here, and this one as the file of the workload traffic_trace",
        ),
        (
            "provider: clab\nnodes: [leaf1, spine1]\nlinks: [leaf1-spine1]\n",
            "a topology of netlab",
            "give the clab.yml that `netlab create` writes for its provider clab",
        ),
        (
            "infrastructure:\n  name: clos\n  connections:\n    - server.0.nic.0.eth1.leafsw.0.port.0\n",
            "an InfraGraph file of its first form, with connections as texts",
            "give one of its present form, with devices, instances and edges",
        ),
        ("", "an empty file", "check that it was copied whole"),
    ],
)
@pytest.mark.parametrize("name", [None, "ibnetdiscover"])
def test_what_is_known_and_not_read_says_what_to_give(
    text: str, found: str, next_step: str, name: str | None, tmp_path: Path
) -> None:
    """`name the format` did not help: named, each line was a mistake."""
    path = tmp_path / "subnet.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        import_fabric([path], name)
    assert str(caught.value) == f"{path}: {found}\n  next: {next_step}"


@pytest.mark.parametrize(
    ("name", "text"), [("eos.json", '{"interfaces": {}}'), ("topology.yml", "nodes: [a]\nlinks: []\n")]
)
def test_a_name_alone_makes_no_configuration(name: str, text: str, tmp_path: Path) -> None:
    """Any *.json was a SONiC configuration without hostname, any *.yml a containerlab file without topology."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=r"a format that no importer recognises|a topology of netlab"):
        import_fabric([path])


def test_what_nobody_knows_is_asked_for_its_format(tmp_path: Path) -> None:
    """As before."""
    path = tmp_path / "notes.txt"
    path.write_text("leaf1 is next to spine1\n")
    with pytest.raises(InputError, match="a format that no importer recognises"):
        import_fabric([path])


def test_a_packed_file_is_looked_into(tmp_path: Path) -> None:
    """One of which nothing is left is cut off, and one that an importer reads is to be unpacked."""
    path = tmp_path / "subnet.txt.gz"
    path.write_bytes(gzip.compress(NODES.encode()))
    with pytest.raises(InputError, match="a list of nodes without links"):
        import_fabric([path])
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(InputError, match="a packed file that is cut off or damaged at its beginning"):
        import_fabric([path])
    path.write_bytes(gzip.compress(b'Switch\t36 "S-0002c90000000010"\n'))
    with pytest.raises(InputError, match=r"subnet.txt.gz: a packed file\n  next: unpack it$"):
        import_fabric([path])
