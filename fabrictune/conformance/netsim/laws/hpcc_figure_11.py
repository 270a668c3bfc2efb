"""HPCC's figure 11 family: how much longer flows take than alone, under HPCC and under DCQCN with and without a window.

The paper's fabric, 320 hosts of 100 Gb/s under 20 ToRs, 20 aggregation and 16 core switches of 400 Gb/s, 1 us a link,
with Hadoop's flow sizes: at half load, and at 30 % with 60 hosts at a time writing 500 KB each to one, which takes 2 %
of the hosts' capacity. Every law gets the same flows. Only the order of the laws is the paper's; its curves cannot be
had again by others, by their own count. `benchmarks/hpcc_figure_11.py` runs the same for longer.

Source: Li et al., HPCC, SIGCOMM 2019, section 5.3 and figure 11; DCQCN as its authors' ns-3 runs it under the name
`dcqcn_paper` (steps of 20 and 200 Mb/s, no byte counter), HPCC without stages, as there. Windows hold what each flow's
own path does, HPCC's and DCQCN's alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from fabrictune.conformance.netsim.laws.long_flows import law_with_settings
from fabrictune.foundation.cases import Case
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.seeds import stream
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.workloads.merge import join
from fabrictune.netsim.workloads.poisson import PoissonSpec, make_poisson
from fabrictune.netsim.workloads.table import GeneratedTraffic, one_message_each
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric

SHORT_BYTES, LONG_BYTES = 200_000, 1_000_000
INCAST_SENDERS, INCAST_BYTES, INCAST_LOAD_FRACTION = 60, 500_000, 0.02
_NIC_RATE_BPS, _SWITCH_RATE_BPS = 100 * 10**9, 400 * 10**9
_CABLE_MM = 200_000  # 1 us
_DCQCN = {
    "alpha_timer_ps": 50_000_000,
    "fast_recovery_stages": 1,
    "byte_counter_bytes": 0,
    "additive_increase_bps": 20e6,
    "hyper_increase_bps": 200e6,
    "clamp_target": 0,
}
LAWS: dict[str, tuple[str, dict[str, float]]] = {
    "hpcc": ("hpcc", {"max_stages": 0, "network_rtt_ps": 0}),
    "dcqcn+window": ("dcqcn", {**_DCQCN, "is_windowed": 1}),
    "dcqcn": ("dcqcn", _DCQCN),
}
CONFIG = PacketConfig(
    mtu_bytes=1000,
    queues=QueuesConfig(
        priorities=(PriorityConfig(priority=3, lossless=True, alpha=0.125), PriorityConfig(priority=6)),
        acknowledgements=6,
        cnp=6,
    ),
    buffer=BufferConfig(size_bytes=32_000_000),
)


@dataclass(frozen=True, kw_only=True)
class Load:
    """The traffic of the hosts while flows begin."""

    load_fraction: float
    has_incast: bool
    duration_ns: int


@dataclass(frozen=True, kw_only=True)
class Slowdowns:
    """Figures of one run; slowdowns are times alone, of the flows outside the incast."""

    short_p50: float
    short_p99: float
    long_p50: float
    queue_p99_bytes: float  # of all ports and samples while flows begin
    paused_us: float  # mean of the ports


def cases() -> tuple[Case, ...]:
    """Return the cases: 250 us, which have one incast."""
    return tuple(_orderings(Load(load_fraction=0.3, has_incast=True, duration_ns=250_000)))


def _orderings(load: Load) -> Iterator[Case]:
    figures: dict[str, Callable[[Slowdowns], float]] = {
        "slowdown-below-200KB": lambda run: run.short_p99,
        "queue": lambda run: run.queue_p99_bytes,
    }
    for better, worse in (("hpcc", "dcqcn+window"), ("dcqcn+window", "dcqcn")):
        for figure, pick in figures.items():
            yield Case(
                name=f"netsim.hpcc-figure-11.{figure}.{better}-before-{worse}",
                source="Li et al., HPCC, SIGCOMM 2019, figure 11: which of the two is smaller at the 99th percentile",
                unit="of the other law's",
                expected=1.0,
                low=0.0,
                high=1.0,
                run=partial(_ratio, pick, better, worse, load),
                trust="B",
            )


def _ratio(pick: Callable[[Slowdowns], float], better: str, worse: str, load: Load) -> float:
    return pick(simulate_slowdowns(better, load, 1)) / pick(simulate_slowdowns(worse, load, 1))


@cache
def simulate_slowdowns(label: str, load: Load, seed: int) -> Slowdowns:
    """Return the figures of one run under one of LAWS."""
    from fabrictune.netsim.packet import run
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    name, settings = LAWS[label]
    fabric = paper_fabric()
    pairs, flows = traffic(fabric, load, seed)
    probe = ProbeConfig(interval_ns=10_000, ports="all")
    network = build_network(fabric, pairs, HashSpec())
    tables = run(
        network, flows, law_with_settings(name, tuple(settings.items())), CONFIG, seed=seed, probe=probe
    ).tables
    transfers, samples = tables["transfers"], tables["samples"]
    bytes_N, slowdown_N = transfers["bytes"], transfers["slowdown"]
    is_background_N = (bytes_N != INCAST_BYTES) | (not load.has_incast)
    short_N = slowdown_N[is_background_N & (bytes_N < SHORT_BYTES)]
    long_N = slowdown_N[is_background_N & (bytes_N >= LONG_BYTES)]
    queue_bytes_S = samples["queue_bytes"][samples["time_ps"] < load.duration_ns * PS_PER_NS]
    return Slowdowns(
        short_p50=percentile(short_N, 0.5),
        short_p99=percentile(short_N, 0.99),
        long_p50=percentile(long_N, 0.5),
        queue_p99_bytes=percentile(queue_bytes_S, 0.99),
        paused_us=float(tables["queues"]["paused_ps"].sum()) / 1e6 / fabric.num_ports,
    )


def paper_fabric() -> Fabric:
    """Return the paper's fabric: 480 links."""
    return build_clos(
        ClosSpec(
            num_hosts=320,
            hosts_per_tor_set=16,
            nics_per_host=1,
            nic_rate_bps=_NIC_RATE_BPS,
            uplink_rate_bps=_SWITCH_RATE_BPS,
            downlink_split=1,
            uplinks_per_tor=4,
            aggregations_per_pod=4,
            tor_sets_per_pod=4,
            uplinks_per_aggregation=4,
            num_cores=16,
            host_cable_mm=_CABLE_MM,
            tor_cable_mm=_CABLE_MM,
            core_cable_mm=_CABLE_MM,
        )
    )


def traffic(fabric: Fabric, load: Load, seed: int) -> GeneratedTraffic:
    """Return the flows of one run, incasts behind the others."""
    spec = PoissonSpec(load_fraction=load.load_fraction, duration_ns=load.duration_ns, sizes="hadoop")
    background = make_poisson(spec, fabric, seed)
    return join([background, _incasts(fabric, load, seed)], [0, 0]) if load.has_incast else background


def _incasts(fabric: Fabric, load: Load, seed: int) -> GeneratedTraffic:
    """Return writes of 60 random hosts at a time to another, evenly spaced."""
    generator = stream(seed, "netsim", "incasts")
    capacity_bps = fabric.num_nics * _NIC_RATE_BPS
    interval_ns = 8e9 * INCAST_SENDERS * INCAST_BYTES / (INCAST_LOAD_FRACTION * capacity_bps)
    starts_ns = np.arange(interval_ns / 2, load.duration_ns, interval_ns)
    hosts = np.stack([generator.permutation(fabric.num_nics)[: INCAST_SENDERS + 1] for _ in starts_ns])
    return one_message_each(
        hosts[:, 1:].ravel(),
        np.repeat(hosts[:, 0], INCAST_SENDERS),
        INCAST_BYTES,
        start_ps_N=np.repeat((starts_ns * PS_PER_NS).astype(np.int64), INCAST_SENDERS),
    )
