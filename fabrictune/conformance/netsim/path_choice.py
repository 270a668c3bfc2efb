"""Path choice: link loads under hashing, weights, spraying and adaptive routing.

The hosts under four ToRs send round, each to the host of its number under the next ToR. One packet of the thirty that a
buffer holds is the band.

Sprayed packets are messages of their own, so that go-back-N has nothing to say about their order.
"""

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from fabrictune.conformance.netsim.four_tors import (
    BUFFERED_PACKETS,
    HOSTS_PER_TOR,
    LINK_RATE_BPS,
    LOSSLESS,
    NUM_HOSTS,
    four_tors,
    ring_of_tors,
    run_messages,
)
from fabrictune.conformance.netsim.one_switch import MTU_BYTES
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.cases import Case, around
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.switch import EcnConfig

RUN_NS = 20_000_000
SEEDS = range(4)
SPRAYED_PACKETS = 1000  # of each host
_MAX_MIN = "topology/fairness.py (Bertsekas, Gallager, Data Networks, 6.5.2) on the same hash paths, seeds 0 to 3: {}"
_BISECTION = "closed form: a host's packets over its rate; {}"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    margin = 1 / BUFFERED_PACKETS
    alone_us = SPRAYED_PACKETS * MTU_BYTES * 8e6 / LINK_RATE_BPS
    # Loads of four links are binomial: sqrt(1000 * 3 / 4) = 27 packets is one deviation, and there are 32 links.
    spread = 3.5 * np.sqrt(SPRAYED_PACKETS * (1 - 1 / HOSTS_PER_TOR)) / SPRAYED_PACKETS
    return (
        *(
            Case(
                name=f"netsim.ecmp-throughput-{name}",
                source=_MAX_MIN.format(f"{what}, over its fair rate"),
                unit="of the fair rate",
                **around(1.0, margin),
                run=partial(_ecmp_throughput, name),
            )
            for name, what in (("min", "the slowest flow"), ("max", "the fastest flow"), ("sum", "all flows together"))
        ),
        Case(
            name="netsim.weighted-shares",
            source="WCMP (EuroSys'14): flows in proportion to weights 1 and 3; 1,200 flows, three deviations",
            unit="of the flows on the faster link",
            expected=0.75,
            low=0.75 - 3 * np.sqrt(0.75 * 0.25 / 1200),
            high=0.75 + 3 * np.sqrt(0.75 * 0.25 / 1200),
            run=_weighted_share,
        ),
        Case(
            name="netsim.spray-bisection",
            source=_BISECTION.format("random spraying may add 3.5 deviations of the fullest of 32 links"),
            unit="us",
            expected=alone_us,
            low=alone_us,
            high=alone_us * (1 + spread),
            run=partial(_spray_finish_us, "spray"),
        ),
        Case(
            name="netsim.adaptive-over-spray",
            source="least queue instead of any port: the last packet comes no later than with random spraying",
            unit="of spraying's time",
            expected=1.0,
            low=1 / (1 + spread),
            high=1.0,
            run=lambda: _spray_finish_us("adaptive") / _spray_finish_us("spray"),
        ),
    )


def _ecmp_throughput(name: str) -> float:
    rates = [_rates(seed) for seed in SEEDS]
    if name == "sum":
        return float(sum(got_Q.sum() for got_Q, _ in rates) / sum(fair_Q.sum() for _, fair_Q in rates))
    ratio_X = np.concatenate([got_Q / fair_Q for got_Q, fair_Q in rates])
    return float(ratio_X.min() if name == "min" else ratio_X.max())


@cache
def _rates(hash_seed: int) -> tuple[FloatArray, FloatArray]:
    """Return each flow's simulated rate and its max-min fair rate."""
    from fabrictune.topology.fairness import max_min_rates

    network = ring_of_tors(hash_seed)
    ports = run_messages(network, 10**9, replace(LOSSLESS, time_limit_ns=RUN_NS)).tables["ports"]
    path_QH = network.epochs[0].port_QDH[:, 0]
    sent_bps_Q = ports["data_packets"][path_QH[:, 0]] * MTU_BYTES * 8 / (RUN_NS * 1e-9)
    return sent_bps_Q, max_min_rates(path_QH, network.fabric.port_rate_bps_P)


def _weighted_share() -> float:
    from fabrictune.topology.draft import FabricDraft
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.queue_pairs import make_queue_pairs
    from fabrictune.topology.routing import build_network

    draft = FabricDraft("two links of 1 and 3")
    hosts = [draft.add_host(f"host{number}") for number in range(2)]
    switches = [draft.add_switch(f"switch{number}") for number in range(2)]
    for host, switch in zip(hosts, switches, strict=True):
        draft.add_link((host, "nic0"), (switch, "down"), rate_bps=LINK_RATE_BPS, delay_ps=10_000)
    for weight in (1, 3):
        ends = ((switch, f"trunk{weight}") for switch in switches)
        draft.add_link(*ends, rate_bps=weight * LINK_RATE_BPS, delay_ps=10_000)
    pairs = make_queue_pairs(np.zeros(1200, np.int64), np.ones(1200, np.int64))
    network = build_network(draft.finish(), pairs, HashSpec())
    config = PacketConfig(path_choice=PathChoiceConfig(mode="weighted", weights="rate"))
    packets_P = run_messages(network, 1, config).tables["ports"]["data_packets"]
    slow, fast = 4, 6  # ports come in pairs: two links to hosts, then the two between switches
    return float(packets_P[fast] / (packets_P[slow] + packets_P[fast]))


@cache
def _spray_finish_us(mode: Any) -> float:
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.queue_pairs import make_queue_pairs
    from fabrictune.topology.routing import build_network

    source_Q = np.tile(np.arange(NUM_HOSTS), SPRAYED_PACKETS)
    pairs = make_queue_pairs(source_Q, (source_Q + HOSTS_PER_TOR) % NUM_HOSTS)
    network = build_network(four_tors(), pairs, HashSpec())
    config = PacketConfig(
        wire_overhead_bytes=0,
        ack_bytes=1,
        ecn=EcnConfig(enabled=False),
        path_choice=PathChoiceConfig(mode=mode),
    )
    return float(run_messages(network, MTU_BYTES, config).tables["transfers"]["finish_ps"].max()) / 1e6
