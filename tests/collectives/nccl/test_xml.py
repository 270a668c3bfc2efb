"""NCCL's topology and graph files: what is near what, and which way the channels go."""

import contextlib
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.nccl.graph_xml import read_graphs, ring_flows
from fabrictune.collectives.nccl.topology_xml import Distance, HostTopology, affinity, read_topology
from fabrictune.foundation.errors import InputError

TOPOLOGY = """<system version="1">
  <cpu numaid="0" arch="x86_64">
    <pci busid="s1" class="0x060400">
      <pci busid="s2" class="0x060400">
        <pci busid="g0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
        <pci busid="n0" class="0x020700"><nic><net name="mlx5_0" dev="0" speed="400000" port="1"/></nic></pci>
      </pci>
      <pci busid="n1" class="0x020700"><nic><net name="mlx5_1" dev="1" speed="200000" port="1"/></nic></pci>
    </pci>
    <nic><net name="eth0" dev="2" speed="10000"/></nic>
  </cpu>
  <cpu numaid="1" arch="x86_64">
    <pci busid="s3" class="0x060400"><pci busid="g1" class="0x030200"/><pci busid="n3" class="0x020700"/></pci>
  </cpu>
</system>
"""
GRAPHS = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="1" nchannels="2" speedintra="20.5" speedinter="24">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="1"/></channel>
    <channel><gpu dev="1"/><gpu dev="0"/></channel>
  </graph>
  <graph id="1" pattern="3" crossnic="0" nchannels="1" speedintra="20" speedinter="24">
    <channel><net dev="0"/><gpu dev="0"/><net dev="0"/></channel>
  </graph>
</graphs>
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "nccl.xml"
    path.write_text(text)
    return path


def test_distances_are_those_nccl_prints(tmp_path: Path) -> None:
    """Under one switch PIX, under two PXB, on one NUMA node PHB, on another SYS."""
    topology = read_topology(write(tmp_path, TOPOLOGY))
    found = {(gpu.bus_id, device.name or device.bus_id): distance.name for gpu, device, distance in affinity(topology)}
    assert found == {
        ("g0", "mlx5_0"): "PIX",
        ("g0", "mlx5_1"): "PXB",
        ("g0", "eth0"): "PHB",
        ("g0", "n3"): "SYS",
        ("g1", "mlx5_0"): "SYS",
        ("g1", "mlx5_1"): "SYS",
        ("g1", "eth0"): "SYS",
        ("g1", "n3"): "PIX",
    }


def test_devices_are_those_of_the_file_or_numbered_in_its_order(tmp_path: Path) -> None:
    """A dump numbers GPUs and devices; a PCI tree alone has classes only."""
    topology = read_topology(write(tmp_path, TOPOLOGY))
    assert (topology.num_numa_nodes, topology.switches) == (2, ("s1", "s2", "s3"))
    assert [(gpu.index, gpu.bus_id, gpu.numa) for gpu in topology.gpus] == [(0, "g0", 0), (1, "g1", 1)]
    devices = [(device.index, device.name, device.rate_bps) for device in topology.network_devices]
    assert devices == [(0, "mlx5_0", 400e9), (1, "mlx5_1", 200e9), (2, "eth0", 10e9), (3, "", -1)]
    assert [device.name for device in topology.nearest_devices(topology.gpus[0])] == ["mlx5_0"]


def test_a_gpu_without_any_device_near_has_none() -> None:
    """No network device: nothing is nearest."""
    lonely = HostTopology(num_numa_nodes=0, switches=(), gpus=(), network_devices=())
    assert list(affinity(lonely)) == []
    assert Distance.PIX < Distance.PXB < Distance.PHB < Distance.SYS


def test_graphs_have_patterns_and_channels_in_order(tmp_path: Path) -> None:
    """A ring that leaves the host on its first channel and a tree."""
    ring, tree = read_graphs(write(tmp_path, GRAPHS))
    assert (ring.pattern, ring.may_cross_rails, ring.speed_inside, ring.speed_between) == ("ring", True, 20.5, 24.0)
    assert [(channel.gpus, channel.devices) for channel in ring.channels] == [((0, 1), (0, 1)), ((1, 0), ())]
    assert (tree.pattern, tree.channels[0].devices) == ("tree", (0, 0))


def test_a_ring_joins_each_host_to_the_next(tmp_path: Path) -> None:
    """Out through device 1, in through device 0; three hosts, two queue pairs a connection: six flows."""
    graphs = read_graphs(write(tmp_path, GRAPHS))
    flows = ring_flows(graphs, ("a", "b", "c"), qps_per_connection=2, origin="graph.xml")
    assert [flows.label(row) for row in range(0, 6, 2)] == ["a/net1 to b/net0", "b/net1 to c/net0", "c/net1 to a/net0"]
    assert flows.origin_F[0] == "graph.xml:3: ring channel 0"
    for fewer, hosts in ((graphs, ("a",)), (graphs[1:], ("a", "b"))):
        assert ring_flows(fewer, hosts).notes == ("no ring of these graphs leaves its host",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphs/>", "{}:1: <graphs>: an element <graphs> at the top\n  allowed: <system>"),
        (
            '<system><cpu numaid="x"><pci class="0x0302"/></cpu></system>',
            "{0}:1: <cpu>: numaid 'x'\n  allowed: a whole number\n"
            '{0}:1: <pci>: a <pci> without busid\n  allowed: busid="0000:06:00.0"',
        ),
        ('<!DOCTYPE a [<!ENTITY b "c">]><system/>', "{}:1: a document type declaration\n  allowed: "),
    ],
)
def test_a_broken_topology_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    """Another root, values that are none, a document type."""
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_topology(path)
    assert str(caught.value).startswith(message.format(path))


def test_a_broken_graph_names_every_mistake(tmp_path: Path) -> None:
    """A pattern that NCCL does not have, a speed that is none, a GPU without number."""
    path = write(
        tmp_path, '<graphs><graph id="0" pattern="9" speedintra="fast"><channel><gpu/></channel></graph></graphs>'
    )
    with pytest.raises(InputError) as caught:
        read_graphs(path)
    assert [(mistake.found, mistake.allowed[:14]) for mistake in caught.value.mistakes] == [
        ("pattern 9", "1 (balanced tr"),
        ("speedintra 'fast'", "a number"),
        ("no dev", "a whole number"),
    ]
    with pytest.raises(InputError, match="an element <system> at the top"):
        read_graphs(write(tmp_path, TOPOLOGY))


@given(st.sampled_from([TOPOLOGY, GRAPHS]), st.integers(0, 800), st.text(max_size=4))
def test_a_mutated_file_is_read_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, text: str, place: int, piece: str
) -> None:
    """Text overwritten anywhere, read as both kinds of file."""
    path = tmp_path_factory.mktemp("xml") / "mutated.xml"
    path.write_text(text[:place] + piece + text[place + len(piece) :])
    for read in (read_topology, read_graphs):
        with contextlib.suppress(InputError):
            read(path)


def test_a_topology_is_found_among_a_jobs_lines(tmp_path: Path) -> None:
    """Lines of the job before and behind it are counted, and a mistake keeps its own line."""
    topology = read_topology(write(tmp_path, f"NCCL INFO a\n# b\n{TOPOLOGY}# c\n{TOPOLOGY}"))
    assert len(topology.gpus) == 2
    assert topology.notes[0].endswith("lines around the topology, left out")
    assert topology.notes[1] == "further topologies, left out: 1"
    with pytest.raises(InputError, match=r"nccl.xml:6: <gpu>: dev 'x'"):
        read_topology(write(tmp_path, "# a\n" + TOPOLOGY.replace('gpu dev="0"', 'gpu dev="x"')))
    assert read_topology(write(tmp_path, f'<?xml version="1.0"?>\n{TOPOLOGY}')).notes == ()


def test_a_topology_is_read_from_a_pipe(tmp_path: Path) -> None:
    """Until its writer ends it."""
    pipe = tmp_path / "topo.xml"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TOPOLOGY,))
    writer.start()
    assert len(read_topology(pipe).network_devices) == 4
    writer.join()
