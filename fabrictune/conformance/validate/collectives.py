"""Conformance of collectives in the packet engine: against the lower bound of their schedules.

On a clean fabric every algorithm listed in `ALGORITHMS` takes at most 3 % longer than its lower bound and never less;
on one where flows collide the slowest flow takes what max-min fairness of the same paths says.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.lower_bound import UniformLinks, lower_bound_ps
from fabrictune.collectives.plans import make_plans
from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.cases import Case, around
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Operation, TrafficTrace
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.packet import run
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.fairness import max_min_rates
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import place
from fabrictune.topology.routing import build_network

_BAND = 0.03
_MB = 10**6
_SLICE = 256_000
_HALVES = (Operation.ALL_REDUCE, Operation.REDUCE_SCATTER, Operation.ALL_GATHER)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One collective on hosts under one non-blocking layer of switches."""

    algorithm: str
    operation: Operation
    num_ranks: int
    gpus_per_host: int = 1
    num_bytes: int
    channels: int = 1
    slice_bytes: int | None = None

    @property
    def name(self) -> str:
        """Return the job in a few words."""
        ranks = f"{self.num_ranks}-ranks" + (f"-{self.gpus_per_host}-a-host" if self.gpus_per_host > 1 else "")
        operation = self.operation.name.lower()
        return f"{self.algorithm}-{operation}-{ranks}-{self.num_bytes // 1000}-KB".replace("_", "-")

    @property
    def expansion(self) -> ExpansionSpec:
        """Return how it is put on the wires."""
        return ExpansionSpec(algorithm=self.algorithm, channels=self.channels, slice_bytes=self.slice_bytes)


def _on_hosts(operation: Operation, *, num_bytes: int) -> Job:
    """Return a hierarchical collective on four hosts of eight GPUs."""
    return Job(
        algorithm="hierarchical",
        operation=operation,
        num_ranks=32,
        gpus_per_host=8,
        num_bytes=num_bytes,
        slice_bytes=_SLICE,
    )


def _sized(algorithm: str, operation: Operation, num_ranks: int, num_bytes: int, **settings: int) -> Job:
    return Job(algorithm=algorithm, operation=operation, num_ranks=num_ranks, num_bytes=num_bytes, **settings)


# Jobs of a size of their own: chunks large enough to fill a tree, hosts of several GPUs, odd numbers of ranks.
_SIZED = (
    _sized("ring", Operation.ALL_REDUCE, 2, 2 * _MB),
    _sized("ring", Operation.ALL_REDUCE, 8, 8 * _MB),
    _sized("ring", Operation.ALL_REDUCE, 8, 512_000),
    _sized("ring", Operation.ALL_REDUCE, 32, 32 * _MB),
    _sized("ring", Operation.ALL_REDUCE, 32, 32 * _MB, gpus_per_host=8, channels=8),
    _sized("ring", Operation.BROADCAST, 8, 8 * _MB),
    _sized("ring", Operation.ALL_TO_ALL, 16, 16 * _MB),  # the default of an algorithm without its own
    _sized("double_binary_tree", Operation.ALL_REDUCE, 8, 128 * _MB, slice_bytes=_SLICE),
    _sized("double_binary_tree", Operation.ALL_REDUCE, 16, 128 * _MB, slice_bytes=_SLICE),
    _sized("bruck", Operation.ALL_REDUCE, 13, 13 * _MB),
    *(_on_hosts(operation, num_bytes=128 * _MB) for operation in _HALVES),
    _on_hosts(Operation.ALL_TO_ALL, num_bytes=32 * _MB),
    _sized("2dh", Operation.ALL_TO_ALL, 32, 128 * _MB, gpus_per_host=8, slice_bytes=_SLICE),
)
_COLLIDING_SEEDS = range(4)


def cases() -> tuple[Case, ...]:
    """Return the cases of collectives on a fabric."""
    return (*(_clean_case(job) for job in _jobs()), *(_colliding_case(seed) for seed in _COLLIDING_SEEDS))


def _jobs() -> tuple[Job, ...]:
    """Return the jobs of a size of their own, and one of 16 ranks and 16 MB for what `ALGORITHMS` has besides."""
    sized = {(job.algorithm, job.operation) for job in _SIZED}
    others = [
        _sized(name, operation, 16, 16 * _MB)
        for name, algorithm in ALGORITHMS.items()
        for operation in algorithm.implementations
        if (name, operation) not in sized
    ]
    return (*_SIZED, *others)


def _clean_case(job: Job) -> Case:
    return Case(
        name=f"validate.{job.name}",
        source="lower bound of the schedule (load and longest path) on one layer of switches, law none; never beaten",
        unit="times the bound",
        expected=1.0,
        low=1.0,
        high=1.0 + _BAND,
        run=lambda: _simulated_ps(job) / _bound_ps(job),
    )


def _fabric(job: Job) -> Fabric:
    """Return hosts that share one layer of switches, one a rail: no two messages of a round share a link."""
    num_hosts = job.num_ranks // job.gpus_per_host
    return build_clos(
        ClosSpec(
            num_hosts=num_hosts,
            hosts_per_tor_set=num_hosts,
            nics_per_host=job.gpus_per_host,
            tiers=2,
            downlink_split=1,
            uplinks_per_tor=1,
        )
    )


def _links(fabric: Fabric, config: PacketConfig) -> UniformLinks:
    return UniformLinks(
        rate_bps=float(fabric.port_rate_bps_P[0]),
        num_hops=2,
        delay_ps=2.0 * float(fabric.port_delay_ps_P[0]),
        mtu_bytes=config.mtu_bytes,
        overhead_bytes=config.wire_overhead_bytes,
        least_bytes=config.ack_bytes,
        nvlink_rate_bps=config.nvlink_rate_bps,
    )


def _bound_ps(job: Job) -> float:
    trace, fabric = (
        collective_step(ParallelLayout(dp=job.num_ranks), job.num_bytes, operation=job.operation),
        _fabric(job),
    )
    host_R = np.arange(job.num_ranks) // job.gpus_per_host
    (plan,) = make_plans(trace, host_R, ALGORITHMS[job.algorithm], job.expansion.slicing)
    shape = GroupShape(num_members=job.num_ranks, local_size=job.gpus_per_host)
    return lower_bound_ps(plan.schedule, shape, job.num_bytes, _links(fabric, PacketConfig()))


def _simulated_ps(job: Job) -> float:
    layout, fabric = ParallelLayout(dp=job.num_ranks), _fabric(job)
    placement = place(layout, fabric, "contiguous", gpus_per_host=job.gpus_per_host)
    trace = collective_step(layout, job.num_bytes, operation=job.operation)
    return _finish_ps(fabric, *expand(trace, placement, fabric, job.expansion), HashSpec())


def _finish_ps(fabric: Fabric, queue_pairs: QueuePairs, traffic: TrafficTrace, hashing: HashSpec) -> float:
    record = run(build_network(fabric, queue_pairs, hashing), traffic, compile_law(load_law("none")), PacketConfig())
    return float(record.tables["transfers"]["finish_ps"].max())


def _colliding_case(seed: int) -> Case:
    """A ring whose every edge crosses the aggregation layer: its slowest edge sets the pace of every step."""
    return Case(
        name=f"validate.colliding-ring-all-reduce-seed-{seed}",
        source="2(n - 1) steps at the slowest edge's max-min rate on the paths that the hash gives (topology)",
        unit="times the prediction",
        **around(1.0, _BAND),
        run=lambda: _finish_ps(*_colliding(seed)) / _predicted_ps(seed),
    )


@cache
def _colliding(seed: int) -> tuple[Fabric, QueuePairs, TrafficTrace, HashSpec]:
    layout = ParallelLayout(dp=16)
    fabric = build_clos(
        ClosSpec(num_hosts=16, hosts_per_tor_set=8, nics_per_host=1, tiers=2, downlink_split=1, uplinks_per_tor=8)
    )
    placement = place(layout, fabric, "interleaved", gpus_per_host=1)
    queue_pairs, traffic = expand(collective_step(layout, 64 * _MB), placement, fabric, ExpansionSpec())
    return fabric, queue_pairs, traffic, HashSpec(seed=seed)


def _predicted_ps(seed: int) -> float:
    fabric, queue_pairs, _, hashing = _colliding(seed)
    config = PacketConfig()
    path_QH = build_network(fabric, queue_pairs, hashing).epochs[0].port_QDH[:, 0]
    slowest_bps = float(max_min_rates(path_QH, fabric.port_rate_bps_P).min())
    links = _links(fabric, config)
    num_steps, chunk_bytes = 2 * (16 - 1), 64 * _MB // 16
    wire_bytes = int(links.wire_bytes(np.array([chunk_bytes]))[0])
    return num_steps * (wire_bytes * 8e12 / slowest_bps)
