"""The time that NCCL's choice takes: a pipeline of stages, and an interval around it.

    time = latencies of the hops + the first chunk's time at every stage + the other bytes at the slowest

A stage is what a chunk crosses: GPUs of a chain over NVLink, the switch of NVLS, a network between two hosts. Its rate
is the one that NCCL's constants give the protocol and algorithm there, and a network's also what its NICs carry when
every message keeps them busy for a while beside its bytes. Rates count bytes of the buffer.

Latencies are NCCL's for InfiniBand and what the network adds. A ring's path crosses a boundary of hosts as often as its
steps go round, which is more often than the tuning model counts.

Source: constants of the newest version; Hu et al., "Demystifying NCCL", Hot Interconnects 2025, for the pipelines.
Left out: collisions in the fabric, other jobs, stragglers, registered buffers, symmetric memory kernels (NCCL 2.27).
"""

from dataclasses import dataclass, replace

from fabrictune.collectives.nccl.tuning.channels import Shape
from fabrictune.collectives.nccl.tuning.constants import LATEST, VERSIONS
from fabrictune.collectives.nccl.tuning.graphs import find_graphs
from fabrictune.collectives.nccl.tuning.model import Model
from fabrictune.collectives.nccl.tuning.protocols import FACTS, STEPS, Algorithm, Protocol
from fabrictune.foundation.traces import Operation

GB = 1000.0  # bytes a microsecond in a GB/s
PAT_SHARE = 0.75  # of the bus bandwidth. Source: tuning.cc

# Share of NVLS's rate that NVLSTree keeps. Fitted: 16 GB on two p5.48xlarge, aws-samples/awsome-distributed-training
# at 0162aacd, micro-benchmarks/nccl-tests/README.md.
NVLS_TREE_SHARE = 0.96

# Relative half widths of the 90 % interval. Latency: out of place beside in place below 2 KB in that table, and
# constants of Simple in NCCL 2.19 beside 2.27, wider upwards by LATENCY_ABOVE; filling: chunks of the next size;
# transfer: NVLSTree's rate in 2.27 beside 2.28. The upward width was chosen with published curves in view.
LATENCY_UNSURE, FILL_UNSURE, TRANSFER_UNSURE = 0.20, 0.45, 0.08
LATENCY_ABOVE = 0.60  # upwards, of launches and steps inside hosts: NCCL's are those of the fastest hosts
UNCOMPARED_UNSURE = 0.25  # more for operations without published times: as for an assumed value of a profile


@dataclass(frozen=True, kw_only=True)
class Duration:
    """The terms of a time, in us, and what bounds the transfer."""

    latency_us: float
    fill_us: float  # the first chunk's way beside the slowest stage
    transfer_us: float  # all bytes at the slowest stage
    bottleneck: str
    network_us: float  # of the latency: steps between hosts
    network_unsure: float  # relative uncertainty of those, beside the latency's own
    is_compared: bool  # with published times, from which the interval's widths are

    @property
    def total_us(self) -> float:
        """Time of the collective."""
        return self.latency_us + self.fill_us + self.transfer_us

    @property
    def interval_us(self) -> tuple[float, float]:
        """Ends of the 90 % interval: the terms' own widths, added."""
        more = 0.0 if self.is_compared else UNCOMPARED_UNSURE
        local_us = self.latency_us - self.network_us
        both = (LATENCY_UNSURE + more + self.network_unsure) * self.network_us
        both += FILL_UNSURE * self.fill_us + (TRANSFER_UNSURE + more) * self.transfer_us
        below = both + (LATENCY_UNSURE + more) * local_us
        above = both + (LATENCY_ABOVE + more) * local_us
        return max(0.0, self.total_us - below), self.total_us + above


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a chunk crosses `count` times, at a rate of the buffer's bytes in GB/s."""

    name: str
    count: float
    gb_per_s: float


def duration_of(
    model: Model, operation: Operation, algorithm: Algorithm, protocol: Protocol, shape: Shape, size_bytes: int
) -> Duration:
    """Return what a collective takes with an algorithm, a protocol and a shape."""
    path = _Path(
        model=replace(model, constants=VERSIONS[LATEST]),
        operation=operation,
        algorithm=algorithm,
        protocol=protocol,
        shape=shape,
        size_bytes=size_bytes,
    )
    if algorithm == Algorithm.RING and operation != Operation.BROADCAST:
        return path.ring()
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return path.nvls()
    if algorithm == Algorithm.PAT:
        return path.pat()
    return path.chain() if algorithm == Algorithm.RING else path.tree()


@dataclass(frozen=True, kw_only=True)
class _Path:
    model: Model
    operation: Operation
    algorithm: Algorithm
    protocol: Protocol
    shape: Shape
    size_bytes: int

    def ring(self) -> Duration:
        """Return a ring's time: every rank sends from the start, and copies the last chunk once it is there."""
        system = self.model.system
        num_steps = self.model.num_steps(self.operation)
        crossings = -(-num_steps // system.gpus_per_host) if system.num_hosts > 1 else 0
        crossings = min(crossings, num_steps)
        local = self._base + (num_steps - crossings) * self._inside_us
        buffers = num_steps / system.num_ranks
        inside = self._inside / buffers
        between = self._network / buffers
        name, rate = ("network", between) if system.num_hosts > 1 and between < inside else (self._link, inside)
        return self._duration(
            local,
            crossings,
            fill_us=self._chunk_share * self.shape.num_channels / (min(self._inside, self._network) * GB),
            transfer_us=self.size_bytes / (rate * GB),
            bottleneck=name,
        )

    def tree(self) -> Duration:
        """Return a tree's time: up the chain of a host, up the hosts, and down again."""
        system = self.model.system
        levels = system.num_hosts.bit_length() - 1
        up = system.gpus_per_host - 1
        local = self._base + 2 * up * self._inside_us
        stages = [Stage(name=self._link, count=2 * up, gb_per_s=self._inside)]
        if levels:
            stages.append(Stage(name="network", count=2 * levels, gb_per_s=self._network))
        limits = [Stage(name=self._link, count=1, gb_per_s=self._inside / 2), *self._tree_limit()]
        return self._pipelined(local, 2 * levels, stages, limits)

    def nvls(self) -> Duration:
        """Return the time of NVLS, and of trees of hosts over its heads: scatter, reduce, gather."""
        system = self.model.system
        levels = system.num_hosts.bit_length() - 1 if self.algorithm == Algorithm.NVLS_TREE else 0
        local = self._inside_us + self._base
        switch = self._switch
        num_stages = 3 if self.operation == Operation.ALL_REDUCE else 2
        stages = [Stage(name="NVLS", count=num_stages, gb_per_s=switch)]
        limits = [Stage(name="NVLS", count=1, gb_per_s=switch)]
        if levels:
            stages.append(Stage(name="network", count=2 * levels, gb_per_s=self._network))
            limits += self._tree_limit()
            if system.num_hosts > 2:
                bus = self.model.bus_gb_per_s(self.operation, self.algorithm, self.protocol)
                rate = bus * system.num_ranks / self.model.num_steps(self.operation)
                limits.append(Stage(name="NVLSTree", count=1, gb_per_s=rate))
        return self._pipelined(local, 2 * levels, stages, limits)

    def chain(self) -> Duration:
        """Return the time of a broadcast: chunks pass from rank to rank."""
        system = self.model.system
        crossings = system.num_hosts - 1
        hops = system.num_ranks - 1 - crossings
        local = self._base + hops * self._inside_us
        stages = [Stage(name=self._link, count=hops, gb_per_s=self._inside)]
        limits = [Stage(name=self._link, count=1, gb_per_s=self._inside)]
        if crossings:
            stages.append(Stage(name="network", count=crossings, gb_per_s=self._network))
            limits.append(Stage(name="network", count=1, gb_per_s=self._network))
        return self._pipelined(local, crossings, stages, limits)

    def pat(self) -> Duration:
        """Return the time of PAT, as NCCL's model has it with the transport's own latency."""
        levels = self.model.system.num_hosts.bit_length() - 1
        local = self._base + self.model.system.num_ranks * 2.8
        rate = min(self._inside, self._network) * PAT_SHARE
        return self._duration(
            local, levels / 3.5, fill_us=0.0, transfer_us=self.size_bytes / (rate * GB), bottleneck="network"
        )

    def _pipelined(self, local_us: float, crossings: float, stages: list[Stage], limits: list[Stage]) -> Duration:
        slowest = min(limits, key=lambda stage: stage.gb_per_s)
        loop = min(self.shape.loop_bytes, self.size_bytes)
        first = sum(stage.count * loop / (stage.gb_per_s * GB) for stage in stages)
        return self._duration(
            local_us,
            crossings,
            fill_us=max(0.0, first - loop / (slowest.gb_per_s * GB)),
            transfer_us=self.size_bytes / (slowest.gb_per_s * GB),
            bottleneck=slowest.name,
        )

    def _duration(
        self, local_us: float, crossings: float, *, fill_us: float, transfer_us: float, bottleneck: str
    ) -> Duration:
        """Return the terms with the latency of so many steps between hosts."""
        network_us = crossings * self._between_us
        return Duration(
            latency_us=local_us + network_us,
            fill_us=fill_us,
            transfer_us=transfer_us,
            bottleneck=bottleneck,
            network_us=network_us,
            network_unsure=self.model.system.transport.unsure_fraction,
            is_compared=self.operation == Operation.ALL_REDUCE,
        )

    def _tree_limit(self) -> list[Stage]:
        """Return what the NICs carry of a double tree: the buffer once between two hosts, twice between more."""
        hosts = self.model.system.num_hosts
        if hosts == 1:
            return []
        return [Stage(name="network", count=1, gb_per_s=self._network / (1 if hosts == 2 else 2))]

    @property
    def _switch(self) -> float:
        """NVLS's rate: of one host's all-reduce, whatever lies between hosts; NVLSTree keeps a share."""
        system = self.model.system
        local = system.gpus_per_host
        alone = find_graphs(replace(system, num_hosts=1))
        is_own = alone.nvls is None or self.model.graphs.is_written
        one_host = self.model if is_own else replace(self.model, graphs=alone)
        bus = one_host.switch_gb_per_s(self.operation)
        rate = bus * local / (2 * (local - 1)) if self.operation == Operation.ALL_REDUCE else bus
        return rate * (NVLS_TREE_SHARE if self.algorithm == Algorithm.NVLS_TREE else 1.0)

    @property
    def _network(self) -> float:
        """All NICs of a host in one direction, in payload of the protocol."""
        system, transport = self.model.system, self.model.system.transport
        wire = self._message_bytes / FACTS[self.protocol].payload_fraction
        busy_us = wire / (system.nic_payload * GB)
        nics = min(system.nics_per_host, max(1, self.shape.num_channels))
        return nics * self._message_bytes / (busy_us + transport.message_us) / GB

    @property
    def _chunk_share(self) -> float:
        """Payload of a chunk, or its share of a smaller buffer."""
        return self.shape.chunk_bytes * min(1.0, self.size_bytes / max(1, self.shape.loop_bytes))

    @property
    def _message_bytes(self) -> float:
        """Payload of a message: a chunk's slice, or the share of a smaller buffer."""
        slices = 2 if self.protocol == Protocol.SIMPLE and self.shape.chunk_bytes >= STEPS // 2 else 1
        is_ring = self.algorithm == Algorithm.RING and self.operation != Operation.BROADCAST
        slices = slices if is_ring else 1
        return max(8.0, self._chunk_share / slices)

    @property
    def _inside(self) -> float:
        return self.model.inside_gb_per_s(self.algorithm, self.protocol)

    @property
    def _base(self) -> float:
        return self.model.constants.base(self.algorithm, self.protocol)

    @property
    def _link(self) -> str:
        return self.model.medium.value

    @property
    def _inside_us(self) -> float:
        step = self.model.constants.step(self.model.medium, self.algorithm, self.protocol)
        return max(step, self.model.post_us(self.protocol)) if self.algorithm == Algorithm.RING else step

    @property
    def _between_us(self) -> float:
        transport = self.model.system.transport
        extra = transport.extra_us + (transport.simple_extra_us if self.protocol == Protocol.SIMPLE else 0.0)
        return self.model.between_us(self.algorithm, self.protocol) + extra
