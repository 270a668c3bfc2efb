"""Ultra Ethernet beside the consortium's own model: the same flows, frames, queues and thresholds as in uet-htsim.

Fat trees at 100 Gb/s with 1 us of cable a link; 4,086 B of payload and 64 B of headers; queues of 43 packets, one
bandwidth-delay product, at every port, marked from 9 packets to 35; NSCC with the network's 14.02 us. What is compared
is the last flow's completion.

Figures of uet-htsim: commit 40ccb05, `htsim_uec -sender_cc_only -tiers 3 -load_balancing_algo oblivious` or `reps`, and
for credits `-receiver_cc_only` and `-receiver_cc` with `reps`; other settings at their defaults, medians of seeds 13, 1
and 2, between which its permutations differ by up to 17 %. Its flows are `connections` of this module, written as its
connection matrix by `benchmarks/ultra_ethernet.py`. Receivers acknowledge 16 KiB at once, in both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np

from fabrictune.foundation.cases import Case, around
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig
from fabrictune.netsim.config.transport import CreditsConfig, TransportConfig

Mode = Literal["random", "reps", "credits", "credits-and-nscc"]  # NSCC alone, by two path choices; credits by REPS

RATE_BPS = 100 * 10**9
CABLE_MM = 200_000  # 1 us
PACKET_BYTES, HEADER_BYTES = 4150, 64
NETWORK_RTT_PS = 14_022_720
QUEUE_BYTES, MARK_FROM_BYTES, MARK_ALL_BYTES = 43 * PACKET_BYTES, 9 * PACKET_BYTES, 35 * PACKET_BYTES
TIMEOUT_NS = 100_656  # htsim's least, for these queues
ACKNOWLEDGE_AFTER_BYTES = 16_384
CREDIT_WINDOW_BYTES = 262_926  # one and a half bandwidth-delay products


@dataclass(frozen=True, kw_only=True)
class Flows:
    """Flows that start together, each of so many bytes, in a fat tree of this radix."""

    radix: int
    num_bytes: int
    pattern: Literal["permutation", "incast", "all-to-all"]
    htsim_us: dict[Mode, float]  # completion of the last flow in uet-htsim

    @property
    def num_hosts(self) -> int:
        """Hosts of the fat tree."""
        return self.radix**3 // 4


FLOWS = {
    "permutation-128": Flows(
        radix=8,
        num_bytes=2_000_000,
        pattern="permutation",
        htsim_us={"random": 229.5, "reps": 206.7, "credits": 206.7, "credits-and-nscc": 207.7},
    ),
    "incast-32": Flows(
        radix=8,
        num_bytes=1_000_000,
        pattern="incast",
        htsim_us={"random": 2641.7, "reps": 2637.2, "credits": 2633.1, "credits-and-nscc": 2633.8},
    ),
    "all-to-all-16": Flows(
        radix=4,
        num_bytes=500_000,
        pattern="all-to-all",
        htsim_us={"random": 632.6, "reps": 634.1, "credits": 666.4, "credits-and-nscc": 665.2},
    ),
}


def connections(flows: Flows) -> list[tuple[int, int]]:
    """Return sources and destinations: five times the number and on, every fourth host to the first, or all pairs."""
    hosts = range(flows.num_hosts)
    if flows.pattern == "permutation":
        return [(host, (host * 5 + flows.num_hosts // 2 + 1) % flows.num_hosts) for host in hosts]
    if flows.pattern == "incast":
        return [(host, 0) for host in range(1, flows.num_hosts, 4)]
    return [(source, destination) for source in hosts for destination in hosts if source != destination]


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for name, flows in FLOWS.items():
        for mode, htsim_us in flows.htsim_us.items():
            yield Case(
                name=f"netsim.ultra-ethernet-{name}.{mode}",
                source=f"uet-htsim, commit 40ccb05: the last flow ends after {htsim_us} us",
                unit="of uet-htsim's completion",
                run=partial(_completion_over_htsim, name, mode),
                **around(1.0, 0.1),
            )


def _completion_over_htsim(name: str, mode: Mode) -> float:
    finish_ps = simulate(name, mode).tables["transfers"]["finish_ps"]
    return float(finish_ps.max()) / 1e6 / FLOWS[name].htsim_us[mode]


@cache
def simulate(name: str, mode: Mode) -> RunRecord:
    """Return the run of one set of flows."""
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each
    from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    flows = FLOWS[name]
    fabric = build_fat_tree(FatTreeSpec(radix=flows.radix, link_rate_bps=RATE_BPS, cable_mm=CABLE_MM))
    source_N, destination_N = np.array(connections(flows), np.int64).T.copy()
    pairs, traffic = one_message_each(source_N, destination_N, flows.num_bytes)
    nscc = {"network_rtt_ps": NETWORK_RTT_PS, "target_fraction": 0.75}
    law = compile_law(load_law("none")) if mode == "credits" else compile_law(load_law("nscc"), nscc)
    return run(build_network(fabric, pairs, HashSpec()), traffic, law, configuration(mode), seed=1)


def configuration(mode: Mode) -> PacketConfig:
    """Return uet-htsim's defaults at 100 Gb/s."""
    return PacketConfig(
        mtu_bytes=PACKET_BYTES - HEADER_BYTES,
        wire_overhead_bytes=HEADER_BYTES,
        ack_bytes=HEADER_BYTES,
        ecn=EcnConfig(kmin_bytes=MARK_FROM_BYTES, kmax_bytes=MARK_ALL_BYTES, pmax_fraction=1.0),
        pfc=PfcConfig(enabled=False, buffer_bytes=100_000_000),
        trimming=TrimmingConfig(
            enabled=True,
            threshold_bytes=QUEUE_BYTES,
            last_hop_threshold_bytes=QUEUE_BYTES,
            trimmed_bytes=HEADER_BYTES,
        ),
        path_choice=PathChoiceConfig(mode="entropy", entropy="random" if mode == "random" else "reps"),
        transport=TransportConfig(
            reliability="selective-repeat",
            reorder_window_ns=10 * TIMEOUT_NS,
            acknowledge_after_bytes=ACKNOWLEDGE_AFTER_BYTES,
            timeout_ns=TIMEOUT_NS,
            credits=CreditsConfig(enabled=mode.startswith("credits"), window_bytes=CREDIT_WINDOW_BYTES),
        ),
    )
