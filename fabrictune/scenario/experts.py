"""Traffic of a mixture of experts: tokens of a job's ranks on their way to experts and back.

Every group along ep exchanges its own tokens, all groups at once. Experts of tokens are drawn with the scenario's seed,
or each pair of ranks carries the expected bytes. Types and the way of the copies are keys; a note of the traffic says
what a token reaches and what a rank sends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np

from fabrictune.collectives.expert_exchange import TOKEN_BYTES, TokenCounts, counts_of_draw, expected_counts
from fabrictune.collectives.expert_messages import Deduplication, Exchange, ExpertMessages, Message, Phase
from fabrictune.collectives.expert_routing import RoutingSpec, draw_experts, popularity
from fabrictune.collectives.expert_traffic import as_flows, put_on_wires
from fabrictune.collectives.plans import local_size
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.seeds import stream
from fabrictune.foundation.traces import Medium, TrafficTrace
from fabrictune.foundation.units import PS_PER_NS, format_bytes
from fabrictune.netsim.workloads.table import GeneratedTraffic, Workload
from fabrictune.scenario.expert_loads import read_loads
from fabrictune.scenario.jobs import JobSpec
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placement import Placement

MAX_TOKENS = 2**24  # of a rank
MAX_SKEW = 10.0
MAX_MESSAGES = 4_000_000  # of all groups, before they are cut, at some 500 bytes each
MAX_SCORES = 2**34  # drawn, at some 40 million a second

TokenType = Literal["fp8", "bf16", "fp32"]


@dataclass(frozen=True, kw_only=True)
class MoeSpec(JobSpec):
    """Tokens of every rank to their experts and back, in each group along ep, all groups at once."""

    num_tokens: int = field(metadata={"help": "tokens of a rank"})
    width: int = field(metadata={"help": "features of a token (hidden size)", "known_as": ("hidden", "hidden_size")})
    experts: RoutingSpec = field(metadata={"help": "experts, and how many of them a token takes"})
    routing: Literal["drawn", "expected"] = field(
        default="drawn", metadata={"help": "draw each token's experts, or give each pair its expected bytes"}
    )
    skew: float = field(default=0.0, metadata={"help": "Zipf exponent of experts' popularity; 0: all alike"})
    loads: Path | None = field(
        default=None, metadata={"help": "popularity of experts: a CSV file with the columns expert and load"}
    )
    dispatch: TokenType = field(default="bf16", metadata={"help": "type of dispatched tokens; fp8 has its scales"})
    combine: TokenType = field(default="bf16", metadata={"help": "type of combined results"})
    deduplication: Deduplication = field(
        default="none",
        metadata={"help": "a copy of a token for each expert, for each rank, or for each host and on over NVLink"},
    )
    phase: Phase = field(default="both", metadata={"help": "what is sent"})
    expert_compute_ns: int = field(default=0, metadata={"help": "a rank's work between the two"})

    def __post_init__(self) -> None:
        super().__post_init__()
        mistakes = [*self._out_of_range(), *self._undivided(), *self._contradictions()] or [*self._too_large()]
        if mistakes:
            raise InputError(*mistakes)

    def _out_of_range(self) -> Iterator[Mistake]:
        for where, value, is_right, allowed in (
            ("num_tokens", self.num_tokens, 1 <= self.num_tokens <= MAX_TOKENS, f"1 to {MAX_TOKENS}"),
            ("width", self.width, 1 <= self.width <= MAX_TOKENS, f"1 to {MAX_TOKENS}"),
            ("skew", f"{self.skew:g}", 0 <= self.skew <= MAX_SKEW, f"0 to {MAX_SKEW:g}"),
            ("expert_compute_ns", self.expert_compute_ns, self.expert_compute_ns >= 0, "0 ns or more"),
        ):
            if not is_right:
                yield Mistake(where=where, found=f"{value}", allowed=allowed)

    def _undivided(self) -> Iterator[Mistake]:
        ep = self.layout.ep
        if ep < 2:
            next_step = "set layout.ep to the ranks that share the experts"
            yield Mistake(where="layout.ep", found=f"degree {ep}", allowed="2 or more", next_step=next_step)
        elif self.experts.num_experts % ep:
            found, allowed = f"{self.experts.num_experts}", f"a multiple of ep {ep}"
            yield Mistake(where="experts.num_experts", found=found, allowed=allowed)

    def _contradictions(self) -> Iterator[Mistake]:
        if self.skew and self.loads is not None:
            yield Mistake(where="skew", found=f"{self.skew:g} beside loads", allowed="one of the two")
        if self.routing == "expected" and (self.skew or self.loads is not None):
            found, allowed = "expected, of experts that are not alike", "drawn, or neither skew nor loads"
            yield Mistake(where="routing", found=found, allowed=allowed)

    def _too_large(self) -> Iterator[Mistake]:
        num_ranks, experts = self.layout.world_size, self.experts.num_experts
        num_messages = num_ranks * self.layout.ep * (2 if self.phase == "both" else 1)
        if num_messages > MAX_MESSAGES:
            found, next_step = f"{num_messages:,} messages between ranks", "lower ep or the other degrees"
            yield Mistake(where="layout", found=found, allowed=f"{MAX_MESSAGES:,}", next_step=next_step)
        elif self.routing == "drawn" and num_ranks * self.num_tokens * experts > MAX_SCORES:
            found = f"{num_ranks * self.num_tokens:,} tokens of {experts} experts to draw"
            allowed, next_step = f"{MAX_SCORES // experts:,}", "take fewer, or set routing: expected"
            yield Mistake(where="num_tokens", found=found, allowed=allowed, next_step=next_step)


def make_moe(spec: MoeSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return the messages of all groups; raises InputError, and TraceError for too many messages."""
    placement = spec.place_on(fabric)
    groups = spec.layout.groups("ep").tolist()
    exchanges = _exchanges(spec, placement, groups, seed)
    queue_pairs, traffic = put_on_wires(
        [(ranks, _messages(spec, exchange)) for ranks, exchange in zip(groups, exchanges, strict=True)],
        placement,
        spec.expansion,
    )
    return queue_pairs, replace(traffic, notes=(_note(spec, exchanges, traffic), *traffic.notes))


def make_moe_flows(spec: MoeSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return one transfer on each queue pair, of all its bytes; raises as `make_moe`."""
    queue_pairs, traffic = make_moe(spec, fabric, seed)
    return queue_pairs, as_flows(queue_pairs, traffic)


MOE = Workload(
    spec=MoeSpec,
    make=make_moe,
    make_flows=make_moe_flows,
    summary="tokens of a mixture of experts to the ranks of their experts and back",
)


def _exchanges(spec: MoeSpec, placement: Placement, groups: Sequence[Sequence[int]], seed: int) -> list[Exchange]:
    """Return what each group exchanges."""
    experts = spec.experts.num_experts
    popularity_X = popularity(experts, spec.skew, stream(seed, "moe", "popularity"))
    if spec.loads is not None:
        popularity_X = read_loads(spec.loads, experts)
    exchanges = []
    for ranks in groups:
        host_n = np.unique(placement.host_R[ranks], return_inverse=True)[1].ravel()
        per_host = local_size(ranks, placement.host_R)
        if spec.deduplication == "node" and len(ranks) // per_host != 1 + int(host_n.max()):
            _refuse_uneven_hosts(ranks)
        counts = _expected(spec, len(ranks), per_host)
        if counts is None:
            drawn = (
                draw_experts(spec.experts, spec.num_tokens, popularity_X, stream(seed, "moe", rank)) for rank in ranks
            )
            counts = counts_of_draw(drawn, experts, host_n)
        exchanges.append(
            Exchange(
                counts=counts,
                ranks_per_host=per_host,
                deduplication=spec.deduplication,
                slice_bytes=spec.expansion.slice_bytes,
            )
        )
    return exchanges


def _expected(spec: MoeSpec, num_ranks: int, ranks_per_host: int) -> TokenCounts | None:
    """Return the expected counts where these are asked for; raises InputError where groups of experts fit no host."""
    if spec.routing == "drawn":
        return None
    size, of_rank = spec.experts.group_size, spec.experts.num_experts // num_ranks
    for owned in (of_rank, of_rank * ranks_per_host):
        if owned % size and size % owned:
            found = f"expected, of groups of {size} experts where a rank or a host has {owned}"
            allowed = "whole groups of experts on each rank and host, or parts of one"
            raise InputError(Mistake(where="routing", found=found, allowed=allowed, next_step="set routing: drawn"))
    return expected_counts(spec.experts, spec.num_tokens, num_ranks, ranks_per_host)


def _refuse_uneven_hosts(ranks: Sequence[int]) -> NoReturn:
    raise InputError(
        Mistake(
            where="deduplication",
            found=f"node, where the expert group of rank {ranks[0]} has unequal numbers of ranks on its hosts",
            allowed="as many ranks of a group on each host, one after another",
            next_step="change the layout or the placement, or set deduplication: rank",
        )
    )


def _messages(spec: MoeSpec, exchange: Exchange) -> list[Message]:
    plan = ExpertMessages(exchange=exchange)
    if spec.phase != "combine":
        plan.dispatch(TOKEN_BYTES[spec.dispatch](spec.width))
    if spec.phase == "both":
        plan.work(spec.expert_compute_ns * PS_PER_NS)
    if spec.phase != "dispatch":
        plan.combine(TOKEN_BYTES[spec.combine](spec.width))
    return plan.messages


def _note(spec: MoeSpec, exchanges: Sequence[Exchange], traffic: TrafficTrace) -> str:
    """Return what a token reaches, and what crosses fabric and NVLink, in a sentence."""
    num_tokens = spec.num_tokens * spec.layout.world_size
    hosts, ranks = (
        float(sum(counts.sum() for counts in found)) / num_tokens
        for found in (
            [exchange.counts.hosts_nH for exchange in exchanges],
            [exchange.counts.ranks_nn for exchange in exchanges],
        )
    )
    taken = [exchange.counts.choices_nn.sum(axis=0) for exchange in exchanges]
    busiest = float(max(column.max() for column in taken) * spec.layout.ep) / float(taken[0].sum())
    sent = {medium: int(traffic.bytes_N[traffic.medium_N == medium].sum()) for medium in (Medium.FABRIC, Medium.NVLINK)}
    types = [
        f"{name} {TOKEN_BYTES[kind](spec.width):,} B a token ({kind})"
        for name, kind in (("dispatch", spec.dispatch), ("combine", spec.combine))
        if spec.phase in (name, "both")
    ]
    return (
        f"moe: {', '.join(types)}; a token reaches {hosts:.2f} hosts and {ranks:.2f} ranks, the busiest rank has "
        f"{busiest:.2f} times its share; fabric {format_bytes(sent[Medium.FABRIC])}, "
        f"NVLink {format_bytes(sent[Medium.NVLINK])}, deduplication: {spec.deduplication}"
    )
