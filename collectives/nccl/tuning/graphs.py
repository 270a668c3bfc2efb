"""Graphs of NCCL: how many channels of which rate an algorithm has on a host.

NCCL searches paths on the host's topology, from its highest speed down. On hosts whose GPUs have equal links and whose
NICs are dealt evenly the search has a closed form: at a speed s, as many channels fit as s goes into a GPU's links and
into each NIC; the product of channels and speed decides, and speeds below about half of a found one are not tried.

Source: NVIDIA/nccl v2.27.7-1, src/graph/search.cc: ncclTopoCompute, ncclTopoDupChannels, ncclTopoSearchTryNvls.
Left out: links of other speed between some GPUs, NICs behind the CPU, NCCL_CROSS_NIC=1; a host that has them gives the
graphs that NCCL wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabrictune.collectives.nccl.graph_xml import RING, read_graphs
from fabrictune.collectives.nccl.graph_xml import Graph as WrittenGraph
from fabrictune.collectives.nccl.tuning.constants import HOPPER, generation_of
from fabrictune.collectives.nccl.tuning.system import System
from fabrictune.foundation.errors import InputError, Mistake

MAX_CHANNELS = 64  # MAXCHANNELS
MAX_NVLS_HEADS = 32  # NCCL_MAX_NVLS_ARITY

_INSIDE = (
    (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0),
    (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0),
    (90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0),
)
_BETWEEN = (
    (48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12),
    (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12),
    (96.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12),
)
_KEPT = 0.49  # of a found speed: slower ones are not tried


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Channels of an algorithm, each of a rate inside the host and one between hosts, in GB/s."""

    num_channels: int
    inside: float
    between: float


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """The graphs of a host, after they were made to have equally many channels."""

    ring: Graph
    tree: Graph
    nvls: Graph | None  # None: no NVSwitch, a GPU before Hopper, or fewer than three GPUs a host
    tree_is_balanced: bool  # the tree's two NIC ends lie on two GPUs
    is_written: bool = False  # by NCCL; links carry no more than its channels then


def find_graphs(system: System) -> Graphs:
    """Return the graphs NCCL finds on a host of a system."""
    ring, tree = _find_ring(system), _find_tree(system)
    num_channels = min(ring.num_channels, tree.num_channels)
    return Graphs(
        ring=replace(ring, num_channels=num_channels),
        tree=replace(tree, num_channels=num_channels),
        nvls=_find_nvls(system),
        tree_is_balanced=system.num_hosts == 1
        or system.compute_capability < 90
        or system.nics_per_host < system.gpus_per_host,
    )


def graphs_of_file(path: Path, system: System) -> Graphs:
    """Return the graphs of a file that NCCL wrote, NCCL_GRAPH_DUMP_FILE; raises InputError where one is missing."""
    found = read_graphs(path)
    ring = [graph for graph in found if graph.pattern == RING and graph.channels]
    tree = [graph for graph in found if graph.pattern.endswith("tree") and graph.channels]
    nvls = [graph for graph in found if graph.pattern == "NVLS" and graph.channels]
    if not ring or not tree:
        missing = "ring" if not ring else "tree"
        raise InputError(Mistake(where=str(path), found=f"no graph of a {missing} with channels", allowed="both"))
    num_channels = min(len(ring[0].channels), len(tree[0].channels))
    return Graphs(
        ring=replace(_of_file(ring[0]), num_channels=num_channels),
        tree=replace(_of_file(tree[0]), num_channels=num_channels),
        nvls=_of_file(nvls[0]) if nvls else None,
        tree_is_balanced=system.num_hosts == 1 or tree[0].pattern == "balanced tree",
        is_written=True,
    )


def _of_file(graph: WrittenGraph) -> Graph:
    between = graph.speed_between or graph.speed_inside
    return Graph(num_channels=len(graph.channels), inside=graph.speed_inside, between=between)


def _find_ring(system: System) -> Graph:
    return _duplicated(_best(system, _speeds(system), system.inside), system)


def _find_tree(system: System) -> Graph:
    """Return a chain's graph, with more speed inside the host where NVLink has it and hosts are several.

    A chain leaves the link of its last GPU free; over all channels every GPU is last once.
    """
    inside = system.inside * system.gpus_per_host / max(1, system.gpus_per_host - 1)
    graph = _duplicated(_best(system, _speeds(system), inside), system)
    if system.num_hosts == 1:
        return graph
    for speed in sorted(speed for speed in _speeds(system) if speed > graph.inside):
        if graph.inside >= 2 * graph.between or graph.num_channels * speed > inside:
            break
        graph = replace(graph, inside=speed)
    return graph


def _find_nvls(system: System) -> Graph | None:
    """Return the graph of NVLS; a head's own data cross its link twice."""
    is_multicast = system.has_nvswitch and generation_of(system.compute_capability) >= HOPPER
    if not is_multicast or system.gpus_per_host <= 2:
        return None
    heads = min(system.gpus_per_host, MAX_NVLS_HEADS)
    if system.num_hosts > 1:
        heads = min(heads, system.nics_per_host)
    most = system.nvlink / (heads + 1)
    most = most if system.num_hosts == 1 else min(most, system.nic)
    speeds = _speeds(system)
    inside = next((speed for speed in speeds if speed <= most), 0.0)
    if not inside:
        return None
    between = inside
    for speed in sorted(speed for speed in speeds if speed > inside):
        if between >= 2 * inside or (system.num_hosts > 1 and speed > system.nic):
            break
        between = speed
    return Graph(num_channels=heads, inside=inside, between=between)


def _best(system: System, speeds: Sequence[float], inside: float) -> Graph:
    """Return the channels of the largest sum of speeds; the first of equal ones, which is the fastest."""
    best = Graph(num_channels=0, inside=0.0, between=0.0)
    for speed in speeds:
        if best.num_channels and speed / best.inside <= _KEPT:
            break
        num_channels = _channels_at(system, speed, inside)
        if num_channels * speed > best.num_channels * best.inside:
            best = Graph(num_channels=num_channels, inside=speed, between=speed)
        if best.num_channels * best.inside >= inside:
            break
    return best if best.num_channels else Graph(num_channels=1, inside=0.1, between=0.1)


def _channels_at(system: System, speed: float, inside: float) -> int:
    num_channels = int(inside / speed + 1e-9) if system.gpus_per_host > 1 else MAX_CHANNELS
    if system.num_hosts > 1:
        num_channels = min(num_channels, system.nics_per_host * int(system.nic / speed + 1e-9))
    return min(num_channels, MAX_CHANNELS // 2)


def _duplicated(graph: Graph, system: System) -> Graph:
    """Return a graph of twice as many channels of half the speed, where one channel would be too fast."""
    is_slow = graph.inside < 25
    has_many = system.compute_capability > 80 and graph.inside < 50 and graph.num_channels > 4
    if is_slow or has_many:
        return graph
    num_channels = min(2 * graph.num_channels, MAX_CHANNELS // 2)
    share = -(-num_channels // graph.num_channels)
    return Graph(num_channels=num_channels, inside=graph.inside / share, between=graph.between / share)


def _speeds(system: System) -> tuple[float, ...]:
    row = max(generation_of(system.compute_capability) - HOPPER + 1, 0)
    return (_INSIDE if system.num_hosts == 1 else _BETWEEN)[row]
