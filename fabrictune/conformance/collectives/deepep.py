"""Bandwidth of DeepEP's normal kernels between hosts, as published for H800 with a NIC of 400 Gb/s a GPU.

The expected figures and the settings were written down before the first run of the engine (decision 0080). Bandwidth is
theirs: bytes of one copy of a token for each host it goes to, the sender's own included, over the time of the exchange.
NVLink has the rate that the same table has inside a host; everything else is the engine's default.

Source: DeepEP, docs/legacy.md, "Normal kernels with NVLink and RDMA forwarding"; tests/legacy/test_internode.py.
"""

from fractions import Fraction
from functools import cache, partial
from typing import Literal

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.collectives.expert_exchange import TOKEN_BYTES, TokenCounts, counts_of_draw
from fabrictune.collectives.expert_messages import Exchange, ExpertMessages
from fabrictune.collectives.expert_routing import RoutingSpec, draw_experts, popularity, reach_probability
from fabrictune.collectives.expert_traffic import put_on_wires
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.seeds import stream
from fabrictune.foundation.traces import Medium, TrafficTrace
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.packet import run
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import place
from fabrictune.topology.routing import build_network

Phase = Literal["dispatch", "combine"]

NUM_TOKENS = 4096
WIDTH = 7168
NUM_CHOICES = 8
MOST_GROUPS = 4
NUM_EXPERTS = 256
GPUS_PER_HOST = 8
SLICE_TOKENS = 32  # its largest chunk over RDMA
BAND = 0.15

# GB/s: ranks, then dispatch in FP8 and combine in BF16. Inside a host the bottleneck is NVLink, of which the rank's own
# part crosses nothing: this row is the rate of NVLink for the others.
INSIDE_HOST = (153.0, 158.0)
PUBLISHED = {16: (43.0, 43.0), 32: (58.0, 57.0), 64: (51.0, 50.0)}
TYPES: dict[Phase, str] = {"dispatch": "fp8", "combine": "bf16"}
PHASES: tuple[Phase, ...] = ("dispatch", "combine")
_GB = 10**9


def cases() -> tuple[Case, ...]:
    """Return the published figures, and the closed forms of what is sent."""
    return (*map(_fabric_bytes_case, PUBLISHED), *map(_expected_bytes_case, PUBLISHED), *_bandwidth_cases())


def _bandwidth_cases() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"collectives.deepep-{phase}-ep-{num_ranks}",
            source="DeepEP docs/legacy.md: normal kernels, H800, CX7 400 Gb/s; NVLink as its row inside a host",
            unit="GB/s",
            **around(published[number], BAND),
            run=partial(bandwidth, num_ranks, phase),
            trust="C",
        )
        for num_ranks, published in PUBLISHED.items()
        for number, phase in enumerate(PHASES)
    )


def _fabric_bytes_case(num_ranks: int) -> Case:
    """Every copy for another host crosses the fabric once: tokens counted one by one, and the engine's traffic."""
    return Case(
        name=f"collectives.deepep-dispatch-bytes-ep-{num_ranks}",
        source="the draw, token by token: 7,392 B for each other host that has some of its experts",
        unit="B off",
        **exactly(0),
        run=partial(_bytes_off, num_ranks),
    )


def _expected_bytes_case(num_ranks: int) -> Case:
    """The reach of a host by closed form, beside the draw of 4,096 tokens a rank: four standard deviations at most."""
    num_tokens, reach = NUM_TOKENS * num_ranks, float(_reach_of_host(num_ranks))
    deviation = (reach * (1 - reach) * num_tokens) ** 0.5 / num_tokens
    return Case(
        name=f"collectives.deepep-tokens-of-a-host-ep-{num_ranks}",
        source="closed form of node-limited routing over all orders of scores; 4 standard deviations of the draw",
        unit="of all tokens",
        expected=reach,
        low=reach - 4 * deviation,
        high=reach + 4 * deviation,
        run=lambda: float(_counts(num_ranks).hosts_nH[:, 0].sum()) / num_tokens,
    )


def routing_of(num_ranks: int) -> RoutingSpec:
    """Return the routing of their benchmark: groups are hosts, of which a token takes at most four."""
    num_hosts = num_ranks // GPUS_PER_HOST
    return RoutingSpec(
        num_experts=NUM_EXPERTS,
        num_choices=NUM_CHOICES,
        num_groups=num_hosts,
        chosen_groups=min(num_hosts, MOST_GROUPS),
    )


def bandwidth(num_ranks: int, phase: Phase) -> float:
    """Return the logical bandwidth of a rank in GB/s, as the engine has it."""
    fabric, queue_pairs, traffic = _traffic(num_ranks, phase)
    inside = INSIDE_HOST[PHASES.index(phase)] * _GB * (GPUS_PER_HOST - 1) / GPUS_PER_HOST
    config = PacketConfig(nvlink_rate_bps=round(inside * BITS_PER_BYTE))
    record = run(build_network(fabric, queue_pairs, HashSpec()), traffic, compile_law(load_law("none")), config)
    duration_s = float(record.tables["transfers"]["finish_ps"].max()) / PS_PER_S
    copies = float(_counts(num_ranks).hosts_nH.sum()) / num_ranks
    return copies * TOKEN_BYTES[TYPES[phase]](WIDTH) / duration_s / _GB


def _traffic(num_ranks: int, phase: Phase) -> tuple[Fabric, QueuePairs, TrafficTrace]:
    """Return a switch a rail, and the messages of one exchange."""
    token_bytes, num_hosts = TOKEN_BYTES[TYPES[phase]](WIDTH), num_ranks // GPUS_PER_HOST
    fabric = build_clos(
        ClosSpec(
            num_hosts=num_hosts,
            hosts_per_tor_set=num_hosts,
            nics_per_host=GPUS_PER_HOST,
            tiers=2,
            nic_rate_bps=400 * _GB,
            downlink_split=1,
            uplinks_per_tor=1,
        )
    )
    plan = ExpertMessages(
        exchange=Exchange(
            counts=_counts(num_ranks),
            ranks_per_host=GPUS_PER_HOST,
            deduplication="node",
            slice_bytes=SLICE_TOKENS * token_bytes,
        )
    )
    (plan.dispatch if phase == "dispatch" else plan.combine)(token_bytes)
    placement = place(ParallelLayout(dp=num_ranks, ep=num_ranks), fabric, "contiguous", gpus_per_host=GPUS_PER_HOST)
    return fabric, *put_on_wires([(range(num_ranks), plan.messages)], placement, ExpansionSpec())


@cache
def _tokens(num_ranks: int) -> tuple[IntArray, ...]:
    """Return the experts of each rank's tokens."""
    alike_X = popularity(NUM_EXPERTS, 0.0, stream(0, "popularity"))
    routing = routing_of(num_ranks)
    return tuple(draw_experts(routing, NUM_TOKENS, alike_X, stream(0, rank)) for rank in range(num_ranks))


@cache
def _counts(num_ranks: int) -> TokenCounts:
    return counts_of_draw(_tokens(num_ranks), NUM_EXPERTS, np.arange(num_ranks) // GPUS_PER_HOST)


def _bytes_off(num_ranks: int) -> float:
    """Return by how much the traffic's bytes over the fabric differ from the tokens', counted one by one."""
    _, _, traffic = _traffic(num_ranks, "dispatch")
    on_fabric_N = traffic.medium_N == Medium.FABRIC
    experts_per_host = NUM_EXPERTS * GPUS_PER_HOST // num_ranks
    copies = sum(
        len({expert // experts_per_host for expert in experts} - {rank // GPUS_PER_HOST})
        for rank, expert_TK in enumerate(_tokens(num_ranks))
        for experts in expert_TK.tolist()
    )
    return abs(float(traffic.bytes_N[on_fabric_N].sum()) - copies * TOKEN_BYTES["fp8"](WIDTH))


def _reach_of_host(num_ranks: int) -> Fraction:
    return reach_probability(routing_of(num_ranks), NUM_EXPERTS * GPUS_PER_HOST // num_ranks)
