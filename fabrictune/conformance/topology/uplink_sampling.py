"""Flows that climb from one ToR to another over M equal uplinks: the figures in closed form, and sampled over seeds.

A capacity of c flows is made of queue pairs that share a NIC, or of uplinks faster than NICs. The closed form knows no
fabric; the sample builds one, hashes, routes and shares fairly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import FloatArray
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.ecmp.balls_into_bins import UniformHashing
from fabrictune.topology.ecmp.collisions import find_collisions
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.path_tracing import PathTracer
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import data_headers

NUM_SEEDS = 400
NIC_RATE_BPS = 200_000_000_000


@dataclass(frozen=True, kw_only=True)
class Climb:
    """`num_nics` NICs with `qps_per_nic` queue pairs each, over links that are `link_nics` times as fast as a NIC."""

    num_nics: int
    num_links: int
    qps_per_nic: int = 1
    link_nics: int = 1

    @property
    def capacity_flows(self) -> int:
        """Number of flows that a link carries in full."""
        return self.qps_per_nic * self.link_nics

    def fabric(self) -> Fabric:
        """Return the two ToRs, each with all the NICs."""
        return build_clos(
            ClosSpec(
                num_hosts=2 * self.num_nics,
                hosts_per_tor_set=self.num_nics,
                nics_per_host=1,
                tiers=2,
                switch_radix=256,
                nic_rate_bps=NIC_RATE_BPS,
                uplink_rate_bps=self.link_nics * NIC_RATE_BPS,
                uplinks_per_tor=self.num_links,
                downlink_split=1,
            )
        )


@cache
def closed_form(climb: Climb) -> UniformHashing:
    """Return the closed form, which remembers what it has worked out."""
    return UniformHashing(
        num_flows=climb.num_nics * climb.qps_per_nic,
        num_links=climb.num_links,
        capacity_flows=climb.capacity_flows,
    )


def exact_figures(climb: Climb) -> Mapping[str, float]:
    """Return every figure in closed form."""
    hashing = closed_form(climb)
    return {
        "no-overload": hashing.no_overload_probability,
        "max-load": hashing.expected_max_load,
        "crowded": hashing.crowded_fraction,
        "throughput": hashing.throughput_fraction,
        "slowest": hashing.slowest_fraction,
        "used-links": hashing.expected_used_links,
        "alone": hashing.alone_probability,
    }


@cache
def sampled_figures(climb: Climb) -> Mapping[str, float]:
    """Return the mean of each over 400 seeds of a real fabric's switches."""
    fabric = climb.fabric()
    source_Q = np.repeat(np.arange(climb.num_nics), climb.qps_per_nic)
    queue_pairs = make_queue_pairs(source_Q, climb.num_nics + source_Q)
    routes = PathTracer(fabric, queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q)
    headers, rows = data_headers(fabric, queue_pairs), []
    for seed in range(NUM_SEEDS):
        report = find_collisions(fabric, queue_pairs, routes.paths(headers, HashSpec(seed=seed)))
        uplink_Q = report.port_QH[:, 1]
        load_Q, fraction_Q = report.num_flows_P[uplink_Q], report.fair_rates() / report.demand_bps_Q
        rows.append(
            {
                "no-overload": load_Q.max() <= climb.capacity_flows,
                "max-load": load_Q.max(),
                "crowded": (load_Q > climb.capacity_flows).mean(),
                "throughput": fraction_Q.mean(),
                "slowest": fraction_Q.min(),
                "used-links": len(np.unique(uplink_Q)),
                "alone": (load_Q == 1).mean(),
            }
        )
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def standard_errors(climb: Climb) -> Mapping[str, float]:
    """Return how far means over 400 seeds are off, one standard deviation; of sums over links an upper bound.

    Loads of links add up to one whole, so growing functions of them vary together less than independent ones would.
    """
    hashing = closed_form(climb)
    load = np.arange(hashing.num_flows + 1.0)
    is_over = load > hashing.capacity_flows
    of_max = hashing.max_load_probability
    per_flow = math.sqrt(hashing.num_links) / hashing.num_flows
    deviations = {
        "no-overload": _deviation(of_max, 1.0 - is_over),
        "max-load": _deviation(of_max, load),
        "slowest": _deviation(of_max, 1 / np.maximum(load / hashing.capacity_flows, 1)),
        "crowded": per_flow * _deviation(hashing.load_probability, load * is_over),
        "throughput": per_flow * _deviation(hashing.load_probability, np.minimum(load, hashing.capacity_flows)),
    }
    return {name: deviation / math.sqrt(NUM_SEEDS) for name, deviation in deviations.items()}


def _deviation(probability: FloatArray, value: NDArray[np.floating[Any]]) -> float:
    mean = float(probability @ value)
    return math.sqrt(float(probability @ (value - mean) ** 2))
