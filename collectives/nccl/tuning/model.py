"""What NCCL's tuning model knows of a system: rates of its graphs' channels by algorithm and protocol.

Rates are bus bandwidths, in GB/s. Those of the tuning model count in the graphs' steps of speed, and choose;
`inside_gb_per_s` and `switch_gb_per_s` are what a host's links carry, for the time of the choice.

Source: NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel, in the versions of `constants`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.collectives.nccl.tuning.constants import Medium, TunerConstants, generation_of
from fabrictune.collectives.nccl.tuning.graphs import Graph, Graphs
from fabrictune.collectives.nccl.tuning.protocols import Algorithm, Protocol
from fabrictune.collectives.nccl.tuning.settings import NcclSettings
from fabrictune.collectives.nccl.tuning.system import System
from fabrictune.foundation.traces import Operation

SCATTERED = (Operation.ALL_GATHER, Operation.REDUCE_SCATTER)
_T, _R, _N, _NT, _P = Algorithm.TREE, Algorithm.RING, Algorithm.NVLS, Algorithm.NVLS_TREE, Algorithm.PAT


@dataclass(frozen=True, kw_only=True)
class Model:
    """What the tuning model of one system knows."""

    system: System
    graphs: Graphs
    constants: TunerConstants
    settings: NcclSettings
    num_channels: int  # of rings and trees

    def bus_gb_per_s(self, operation: Operation, algorithm: Algorithm, protocol: Protocol) -> float:
        """Return the bus bandwidth of all channels, before it becomes the algorithm's; 0 where it cannot run."""
        graph = self._graph(algorithm)
        if graph is None:
            return 0.0
        bus = graph.num_channels * self._per_channel(operation, algorithm, graph)
        if algorithm == _R:
            return self._ring_bus(bus, protocol, graph)
        if algorithm == _T:
            return self._tree_bus(bus, protocol, graph)
        return bus * 0.75 if algorithm == _P else bus

    def inside_gb_per_s(self, algorithm: Algorithm, protocol: Protocol) -> float:
        """Return what a host's links carry of a ring or a tree in one direction, whatever lies between hosts.

        Graphs count in steps of speed and up to the NICs; copies take what the links have.
        """
        local, generation = self.system.gpus_per_host, generation_of(self.system.compute_capability)
        if local == 1:
            return float("inf")
        if algorithm == _R:
            links, graph, most = self.system.inside, self.graphs.ring, self.constants.ring_ll128_channel_max
            links = graph.num_channels * graph.inside if self.graphs.is_written else links
        else:
            per_channel = self.graphs.tree.num_channels * self._most(self.constants.tree_channel_max)
            graph, most = self.graphs.tree, self.constants.tree_ll128_channel_max
            links = self.system.inside * local / (local - 1)
            links = graph.num_channels * graph.inside if self.graphs.is_written else links
            links = min(links * 0.92, per_channel)
        if protocol == Protocol.LL:
            links = min(links * (0.5 if algorithm == _R else 1 / 3.8), self.constants.ll_max[generation][0])
        if protocol == Protocol.LL128:
            links = min(links * 0.92, graph.num_channels * self._most(most))
        return links if algorithm == _R or self.graphs.tree_is_balanced else links * 0.85

    def num_steps(self, operation: Operation) -> int:
        """Return the steps of a ring."""
        ranks = self.system.num_ranks
        if operation == Operation.ALL_REDUCE:
            return 2 * (ranks - 1)
        return ranks - 1 if operation in SCATTERED else ranks

    @property
    def medium(self) -> Medium:
        """What joins GPUs of one host."""
        return Medium.NVLINK if self.system.nvlink else Medium.PCIE

    def between_us(self, algorithm: Algorithm, protocol: Protocol) -> float:
        """Return NCCL's latency of a step between hosts, of InfiniBand; the tree's where every step is one."""
        seen = _T if self.system.gpus_per_host == 1 else algorithm
        return self.constants.step(Medium.NETWORK, seen, protocol)

    def post_us(self, protocol: Protocol) -> float:
        """Return what a step of a ring between hosts takes at least, for posting to the network; 0 on one host."""
        if self.system.num_hosts == 1:
            return 0.0
        post_us = self.settings.number("post_ns", round(1000 * self.system.post_us)) / 1000
        return post_us * (3 if protocol == Protocol.SIMPLE else 1)

    @property
    def _column(self) -> int:
        return min(self.system.num_hosts, 3) - 1

    @property
    def _ll_max(self) -> float:
        is_amd = self.system.cpu == "amd"
        row = generation_of(self.system.compute_capability) if self.system.num_hosts == 1 else int(is_amd)
        return self.constants.ll_max[row][self._column]

    def _most(self, rows: Sequence[tuple[float, float, float]]) -> float:
        return rows[generation_of(self.system.compute_capability)][self._column]

    def _graph(self, algorithm: Algorithm) -> Graph | None:
        if algorithm in (_N, _NT):
            return self.graphs.nvls
        return self.graphs.tree if algorithm in (_T, _P) else self.graphs.ring

    def _per_channel(self, operation: Operation, algorithm: Algorithm, graph: Graph) -> float:
        """Return the rate of a channel: of the slower end, and as NVLS's efficiency has it."""
        hosts = self.system.num_hosts
        if algorithm not in (_N, _NT):
            return graph.inside if hosts <= 2 else graph.between
        local = self.system.gpus_per_host
        share = 1.0 if operation == Operation.ALL_REDUCE else (local - 1) / local
        if self.constants.nvls_efficiency is None:
            between = graph.between if hosts <= 2 or algorithm == _N else graph.between / 2
            is_reduced = operation == Operation.ALL_REDUCE
            return min(graph.inside * share, between * (1.0 if is_reduced else 0.9))
        generation = generation_of(self.system.compute_capability)
        inside = self.switch_gb_per_s(operation) / graph.num_channels
        between = graph.between * (2 if hosts <= 2 and algorithm == _NT else 1)
        most = self.constants.nvls_tree_channel_max
        assert most is not None, "a version with NVLS's efficiency has its limit"
        limit = most[generation][self._column] if algorithm == _NT else inside
        return min(inside, between, limit)

    def switch_gb_per_s(self, operation: Operation) -> float:
        """Return the bus bandwidth of NVLS inside a host, by NVLS's efficiency; 0 without NVLS."""
        graph, efficiency = self.graphs.nvls, self.constants.nvls_efficiency
        if graph is None or efficiency is None:
            return 0.0
        local = self.system.gpus_per_host
        factor = 2.0 if operation == Operation.ALL_REDUCE else (local - 1) / local
        of_heads = graph.inside * (graph.num_channels - 1)
        return of_heads * efficiency[generation_of(self.system.compute_capability)] * factor

    def _ring_bus(self, bus: float, protocol: Protocol, graph: Graph) -> float:
        if protocol == Protocol.LL:
            return min(self._ll_max, bus * 0.5)
        if protocol == Protocol.LL128:
            return min(bus * 0.92, graph.num_channels * self._most(self.constants.ring_ll128_channel_max))
        return bus

    def _tree_bus(self, bus: float, protocol: Protocol, graph: Graph) -> float:
        bus = min(bus * 0.92, graph.num_channels * self._most(self.constants.tree_channel_max))
        if protocol == Protocol.LL:
            bus = min(bus / 3.8, self._ll_max)
        if protocol == Protocol.LL128:
            share = 7 / 9 if self.system.num_hosts == 1 else 120 / 128
            bus = min(bus * share, graph.num_channels * self._most(self.constants.tree_ll128_channel_max))
        return bus if self.graphs.tree_is_balanced else bus * 0.85
