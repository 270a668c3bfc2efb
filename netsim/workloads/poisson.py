"""Poisson: flows of published sizes begin at random times, from every NIC to any other, at a given load.

The load is the share of a NIC's rate that its flows' bytes take on average, headers apart. Each NIC draws from a stream
of its own, so that a larger fabric or a longer time changes nothing of what was there before.

Source: the generators of DCTCP's, pFabric's and HPCC's evaluations.
"""

from dataclasses import dataclass, field

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, require_one_of
from fabrictune.foundation.seeds import stream
from fabrictune.foundation.units import PS_PER_NS, PS_PER_S
from fabrictune.netsim.workloads.flow_sizes import FLOW_SIZES
from fabrictune.netsim.workloads.table import GeneratedTraffic, WorkloadSpec, one_message_each, raise_input_error
from fabrictune.topology.fabric import NO_NIC, Fabric

MAX_FLOWS = 5_000_000
SPARE = 6.0  # standard deviations of the number of flows that are drawn beyond its mean


@dataclass(frozen=True, kw_only=True)
class PoissonSpec(WorkloadSpec):
    """Flows between random pairs of NICs for a time."""

    load_fraction: float = field(metadata={"help": "of every NIC's rate, below 1"})
    duration_ns: int = field(metadata={"help": "time in which flows begin"})
    sizes: str = field(
        default="web_search", metadata={"help": "distribution of their sizes", "one_of": tuple(FLOW_SIZES)}
    )

    def __post_init__(self) -> None:
        require_one_of(self.sizes, tuple(FLOW_SIZES), where="sizes", what="distribution", error=InputError)
        if not 0 < self.load_fraction < 1:
            raise_input_error("load", f"{self.load_fraction}", "above 0 and below 1")
        if not 1 <= self.duration_ns <= 10**13:
            raise_input_error("duration", f"{self.duration_ns} ns", "1 ns to 3 hours")


def make_poisson(spec: PoissonSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return the flows in order of their beginning; raises InputError."""
    if fabric.num_nics < 2:
        raise_input_error("poisson", f"a fabric of {fabric.num_nics} NIC", "2 NICs or more")
    mean_bytes = FLOW_SIZES[spec.sizes].mean_bytes
    of_nic = fabric.port_nic_P != NO_NIC
    rate_bps_C = np.bincount(fabric.port_nic_P[of_nic], fabric.port_rate_bps_P[of_nic], minlength=fabric.num_nics)
    flows_per_s_C = spec.load_fraction * rate_bps_C / (8 * mean_bytes)
    num_expected = float(flows_per_s_C.sum()) * spec.duration_ns / 1e9
    if num_expected > MAX_FLOWS:
        raise_input_error("poisson", f"some {num_expected:.3g} flows", f"up to {MAX_FLOWS:,}; shorten `duration`")
    drawn = [_flows_of(nic, spec, fabric.num_nics, float(rate), seed) for nic, rate in enumerate(flows_per_s_C)]
    source_N, destination_N, bytes_N, start_ps_N = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
    order_N = np.lexsort((source_N, start_ps_N))
    return one_message_each(
        source_N[order_N],
        destination_N[order_N],
        bytes_N[order_N],
        start_ps_N=start_ps_N[order_N],
        priority=spec.priority,
    )


def _flows_of(
    nic: int, spec: PoissonSpec, num_nics: int, flows_per_s: float, seed: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return source, destination, bytes and beginning of a NIC's flows."""
    generator = stream(seed, "netsim", "poisson", str(nic))
    num_expected = flows_per_s * spec.duration_ns / 1e9
    num_drawn = int(num_expected + SPARE * np.sqrt(num_expected) + SPARE)
    start_ps_N = np.rint(np.cumsum(generator.exponential(PS_PER_S / flows_per_s, num_drawn))).astype(np.int64)
    bytes_N = FLOW_SIZES[spec.sizes].sample(generator.random(num_drawn))
    other_N = generator.integers(0, num_nics - 1, num_drawn)
    is_in_time_N = start_ps_N < spec.duration_ns * PS_PER_NS
    destination_N = (other_N + (other_N >= nic))[is_in_time_N]
    return np.full(len(destination_N), nic), destination_N, bytes_N[is_in_time_N], start_ps_N[is_in_time_N]
