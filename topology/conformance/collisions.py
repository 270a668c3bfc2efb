"""What random hashing costs: 64 flows from one ToR to another over 64 uplinks, or over 32 of twice the rate."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from foundation.cases import Case, around
from topology.builders.clos import ClosSpec, build_clos
from topology.collisions import CollisionReport, analyze_collisions
from topology.fabric import Fabric
from topology.hashing import HashSpec
from topology.queue_pairs import make_queue_pairs
from topology.routing import build_network

# One ToR of 64 NICs above which each flow chooses among 64 equal uplinks, or among 32 of twice the rate.
UNSPLIT = ClosSpec(
    num_hosts=128,
    hosts_per_tor_set=64,
    nics_per_host=1,
    tiers=2,
    switch_radix=128,
    uplink_rate_bps=200_000_000_000,
    downlink_split=1,
)
SPLIT = replace(UNSPLIT, uplink_rate_bps=400_000_000_000, downlink_split=2)
NUM_TRIALS = 200  # the mean of a throughput then has a standard error of 0.2 %

_RANDOM_SOURCE = "closed form: M E[min(Bin(N, 1/M), capacity)] / N"


def cases() -> tuple[Case, ...]:
    """Return the cases of random hashing."""
    throughputs = [
        Case(
            name=f"topology.ecmp-throughput-{name}",
            source=f"{_RANDOM_SOURCE}; N 64, M {links}, capacity {64 // links}",
            unit="of line rate",
            **around(expected, 0.01),
            run=partial(_mean_over_trials, spec, _throughput),
        )
        for name, spec, links, expected in (("64-on-64", UNSPLIT, 64, 0.6350), ("64-on-32-double", SPLIT, 32, 0.7336))
    ]
    return (
        *throughputs,
        Case(
            name="topology.ecmp-used-links-64-on-64",
            source="closed form: M (1 - (1 - 1/M)^N), N 64, M 64",
            unit="links",
            **around(64 * (1 - (1 - 1 / 64) ** 64), 0.01),
            run=partial(_mean_over_trials, UNSPLIT, _num_used_links),
        ),
        Case(
            name="topology.ecmp-most-loaded-link-64-on-64",
            source="exact convolution: E[max load], N 64, M 64",
            unit="flows",
            **around(3.958, 0.03),
            run=partial(_mean_over_trials, UNSPLIT, _max_flows),
        ),
    )


def _mean_over_trials(spec: ClosSpec, measure: Callable[[Fabric, CollisionReport], float]) -> float:
    """Return the mean over seeds of a measure of 64 flows that all climb from the first ToR to the second."""
    fabric = build_clos(spec)
    queue_pairs = make_queue_pairs(np.arange(64), np.arange(64, 128))
    reports = (
        analyze_collisions(build_network(fabric, queue_pairs, HashSpec(seed=seed))) for seed in range(NUM_TRIALS)
    )
    return float(np.mean([measure(fabric, report) for report in reports]))


def _throughput(fabric: Fabric, report: CollisionReport) -> float:
    return report.mean_throughput_fraction


def _num_used_links(fabric: Fabric, report: CollisionReport) -> float:
    return float((report.num_flows_P[_climbing(fabric)] > 0).sum())


def _max_flows(fabric: Fabric, report: CollisionReport) -> float:
    return float(report.num_flows_P[_climbing(fabric)].max())


def _climbing(fabric: Fabric) -> NDArray[np.bool_]:
    """Mark the ports that lead from a ToR to an aggregation switch."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    is_climbing_P: NDArray[np.bool_] = (tier_P == 1) & (tier_P[fabric.port_peer_P] == 2)
    return is_climbing_P
