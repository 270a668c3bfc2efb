"""Speed of the packet engine: a permutation on fat trees, DCQCN, PFC and ECN, one acknowledgement a packet.

The score is the closed count of hops over processor time: packets times the links of their path, there and back, known
before the run. Retransmissions and notifications are work, but do not count. Traffic, paths and law are pinned here.

Run: `python benchmarks/packet_engine.py`
"""

import resource
import statistics
import time
from typing import Any

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import load_law
from fabrictune.foundation.records import describe_machine
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.workloads.permutation import PermutationSpec, make_permutation
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, Network
from fabrictune.topology.routing import build_network

RUNS = 5
SEED = 1
CASES = {"k8": (8, 8_000_000, 2_876_288), "k16": (16, 2_000_000, 5_860_176)}  # radix, bytes of each host, closed hops
LAW_SETTINGS = {  # as NVIDIA's firmware has them
    "alpha_gain": 5 / 1024,
    "alpha_timer_ps": 1_000_000,
    "decrease_interval_ps": 4_000_000,
    "rate_timer_ps": 300_000_000,
    "byte_counter_bytes": 32767 * 64,
    "fast_recovery_stages": 1,
    "additive_increase_bps": 5e6,
    "hyper_increase_bps": 50e6,
    "min_rate_bps": 1e6,
    "clamp_target": 0,
}
CONFIG = PacketConfig(
    skip="off",
    wire_overhead_bytes=0,
    ack_bytes=64,
    ecn=EcnConfig(kmin_bytes=100_000, kmax_bytes=400_000, pmax_fraction=0.2),
    pfc=PfcConfig(xoff_bytes=61 * 4096, xon_bytes=48 * 4096),
)


def benchmarks() -> list[dict[str, Any]]:
    """Return the figures as rows of benchmarks/results.json."""
    law = compile_law(load_law("dcqcn"), LAW_SETTINGS)
    machine = describe_machine()
    return [row | {"machine": machine} for name in CASES for row in _case(name, law)]


def pinned_case(name: str) -> tuple[Network, TrafficTrace, int]:
    """Return the network, traffic and closed count of hops of a case."""
    radix, message_bytes, pinned_hops = CASES[name]
    fabric = build_fat_tree(FatTreeSpec(radix=radix, link_rate_bps=100_000_000_000, cable_mm=200_000))
    queue_pairs, traffic = make_permutation(PermutationSpec(message_bytes=message_bytes), fabric, SEED)
    network = build_network(fabric, queue_pairs, HashSpec())
    num_hops = _closed_hops(network, traffic)
    assert num_hops == pinned_hops, f"the traffic or its paths have changed: {num_hops} hops, not {pinned_hops}"
    return network, traffic, num_hops


def run_to_the_end(inputs: EngineInputs, law: CompiledLaw) -> tuple[float, _engine.Simulation]:
    """Return the processor time of a run without its set-up, and the simulation at its end."""
    simulation = make_simulation(inputs, law)
    started = time.process_time()
    outcome = simulation.advance(2**62)
    seconds = time.process_time() - started
    assert outcome == _engine.Outcome.FINISHED, outcome
    return seconds, simulation


def _case(name: str, law: CompiledLaw) -> list[dict[str, Any]]:
    network, traffic, num_hops = pinned_case(name)
    inputs = make_engine_inputs(network, traffic, law, CONFIG, seed=SEED, probe=None)
    seconds = sorted(run_to_the_end(inputs, law)[0] for _ in range(RUNS))
    rates = [num_hops / second for second in seconds]
    spread = f"{min(rates) / 1e6:.1f} to {max(rates) / 1e6:.1f} M over {RUNS} runs"
    median = statistics.median(seconds)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [
        ("packet-hops", num_hops / median, "hops/s per core", spread),
        ("time-per-hop", median / num_hops * 1e9, "ns", f"{RUNS} runs"),
        ("closed-hops", num_hops, "hops", "exact"),
        ("peak-memory", peak_mib, "MiB", "whole process, Python and compiler included"),
    ]
    return [
        {
            "name": f"netsim.permutation-{name}.{what}",
            "value": value,
            "unit": unit,
            "spread": shown,
            "command": "python benchmarks/packet_engine.py",
        }
        for what, value, unit, shown in rows
    ]


def _closed_hops(network: Network, traffic: TrafficTrace) -> int:
    hops_Q = (network.epochs[0].port_QDH != NO_PORT).sum(axis=(1, 2))
    packets_N = np.maximum(1, -(-traffic.bytes_N // CONFIG.mtu_bytes))
    return int((packets_N * hops_Q[traffic.qp_N]).sum())


if __name__ == "__main__":
    for row in benchmarks():
        print(f"{row['name']:45} {row['value']:15,.1f} {row['unit']:16} {row['spread']}")
