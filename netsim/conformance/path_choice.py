"""Path choice: what hashes, weights, spraying and adaptive routing make of the links they share.

Sixteen hosts under four ToRs with as many uplinks as hosts send round, each to the host of its number under the next
ToR. So flows that share an uplink share the downlink behind it as well, and no other: one bottleneck each, where FIFO
queues and pauses share as max-min fairness does. One packet of the thirty that a buffer holds is the band.

Sprayed packets are messages of their own, so that go-back-N has nothing to say about their order.
"""

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foundation.cases import Case, around
from netsim.config.packet import PacketConfig
from netsim.config.path_choice import PathChoiceConfig
from netsim.config.switch import EcnConfig, PfcConfig
from netsim.conformance.one_switch import GBPS, MTU_BYTES

HOSTS_PER_TOR, NUM_TORS = 4, 4
NUM_HOSTS = HOSTS_PER_TOR * NUM_TORS
LINK_RATE_BPS = 100 * GBPS
BUFFERED_PACKETS = 30
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
def _rates(hash_seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rate at which each flow was sent in the engine, and its max-min fair rate."""
    from topology.fairness import max_min_rates
    from topology.hashing import HashSpec
    from topology.queue_pairs import make_queue_pairs
    from topology.routing import build_network

    fabric = _fabric()
    source_Q = np.arange(NUM_HOSTS)
    pairs = make_queue_pairs(source_Q, (source_Q + HOSTS_PER_TOR) % NUM_HOSTS)
    network = build_network(fabric, pairs, HashSpec(seed=hash_seed))
    config = PacketConfig(
        wire_overhead_bytes=0,
        ack_bytes=1,
        ecn=EcnConfig(enabled=False),
        pfc=PfcConfig(xoff_bytes=BUFFERED_PACKETS * MTU_BYTES, headroom_bytes=200_000),
        time_limit_ns=RUN_NS,
    )
    ports = _run(network, 10**9, config).tables["ports"]
    path_QH = network.epochs[0].port_QDH[:, 0]
    sent_bps_Q = ports["data_packets"][path_QH[:, 0]] * MTU_BYTES * 8 / (RUN_NS * 1e-9)
    return sent_bps_Q, max_min_rates(path_QH, fabric.port_rate_bps_P)


def _weighted_share() -> float:
    from topology.draft import FabricDraft
    from topology.hashing import HashSpec
    from topology.queue_pairs import make_queue_pairs
    from topology.routing import build_network

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
    packets_P = _run(network, 1, config).tables["ports"]["data_packets"]
    slow, fast = 4, 6  # ports come in pairs: two links to hosts, then the two between switches
    return float(packets_P[fast] / (packets_P[slow] + packets_P[fast]))


@cache
def _spray_finish_us(mode: Any) -> float:
    from topology.hashing import HashSpec
    from topology.queue_pairs import make_queue_pairs
    from topology.routing import build_network

    source_Q = np.tile(np.arange(NUM_HOSTS), SPRAYED_PACKETS)
    pairs = make_queue_pairs(source_Q, (source_Q + HOSTS_PER_TOR) % NUM_HOSTS)
    network = build_network(_fabric(), pairs, HashSpec())
    config = PacketConfig(
        wire_overhead_bytes=0,
        ack_bytes=1,
        ecn=EcnConfig(enabled=False),
        path_choice=PathChoiceConfig(mode=mode),
    )
    return float(_run(network, MTU_BYTES, config).tables["transfers"]["finish_ps"].max()) / 1e6


def _fabric() -> Any:
    from topology.builders.clos import ClosSpec, build_clos

    return build_clos(
        ClosSpec(
            num_hosts=NUM_HOSTS,
            hosts_per_tor_set=HOSTS_PER_TOR,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=LINK_RATE_BPS,
            uplink_rate_bps=LINK_RATE_BPS,
            downlink_split=1,
            uplinks_per_tor=HOSTS_PER_TOR,
        )
    )


def _run(network: Any, message_bytes: int, config: PacketConfig) -> Any:
    from cc.compiling import compile_law
    from cc.loading import load_law
    from netsim.packet import run
    from netsim.workloads.table import one_message_each

    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, message_bytes)
    return run(network, traffic, compile_law(load_law("none")), config)
