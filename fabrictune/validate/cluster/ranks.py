"""Ranks of a stage on the nodes: where they meet, over which interface they talk, and how they are told.

The rendezvous is a port of the first node that is free when it is asked. Over gloo a rank uses the interface of its own
rail (`GLOO_SOCKET_IFNAME`), over NCCL a GPU of its own.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fabrictune.collectives.startup.launchers import Launched
from fabrictune.validate.cluster.crew import Answer
from fabrictune.validate.cluster.site import Site

PORT_S = 30.0
GRACE_S = 30.0  # for starting processes, beyond a stage's own limit


@dataclass(frozen=True, kw_only=True)
class RankPlan:
    """The ranks of a stage."""

    nodes: Sequence[str]
    ranks_per_node: int
    backend: str

    @property
    def num_ranks(self) -> int:
        """All ranks."""
        return len(self.nodes) * self.ranks_per_node

    def node_of(self, rank: int) -> str:
        """Return the node of a rank."""
        return self.nodes[rank // self.ranks_per_node]


@dataclass(frozen=True, kw_only=True)
class RanksOutcome:
    """What rank 0 returned, or by node what failed."""

    result: Mapping[str, Any] | None
    errors: Mapping[str, str]


def plan_ranks(site: Site) -> RankPlan | str:
    """Return the ranks that the nodes can run, or why there are none."""
    settings = site.settings
    nodes = [node for node, own in site.nics.nics.items() if own and node in site.crew.present]
    machines = {node: site.machines[node] for node in nodes}
    lacking = [node for node, machine in machines.items() if not machine["torch"]]
    if lacking:
        return f"torch is not installed on {', '.join(lacking[:5])} ({len(lacking)} of {len(nodes)} nodes)"
    gpus = min((machine["num_gpus"] for machine in machines.values()), default=0)
    backend = settings.backend if settings.backend != "auto" else "nccl" if gpus else "gloo"
    if backend == "nccl" and not gpus:
        return "not every node has a GPU"
    ranks = settings.ranks_per_node or (gpus if backend == "nccl" else 1)
    plan = RankPlan(nodes=nodes, ranks_per_node=ranks, backend=backend)
    return plan if plan.num_ranks > 1 else f"{plan.num_ranks} ranks: it takes two"


def run_ranks(site: Site, plan: RankPlan, part: str, settings: Mapping[str, Any]) -> RanksOutcome:
    """Run a part on all ranks."""
    first = site.nics.nics[plan.nodes[0]][0]
    asked = site.crew.ask({first.node: {"do": "port"}}, limit_s=PORT_S).get(first.node)
    if asked is None or asked.error:
        return RanksOutcome(result=None, errors={first.node: asked.error if asked else "does not answer"})
    limit_s = site.settings.stage_s
    attempt = secrets.token_hex(8)
    orders: dict[str, dict[str, Any]] = {node: {"do": "ranks", "ranks": [], "limit_s": limit_s} for node in plan.nodes}
    for rank in range(plan.num_ranks):
        node, local_rank = plan.node_of(rank), rank % plan.ranks_per_node
        launched = Launched(
            launcher="fabrictune",
            rank=rank,
            num_ranks=plan.num_ranks,
            local_rank=local_rank,
            host=first.ipv4,
            port=int(asked.result),
            attempt=attempt,
            has_store=False,
        )
        environment = _environment(site, plan, node, local_rank)
        own = {"part": part, "launched": asdict(launched), "environment": environment, "limit_s": limit_s, **settings}
        orders[node]["ranks"].append(own)
    return _outcome(plan, site.crew.ask(orders, limit_s=limit_s + GRACE_S))


def _environment(site: Site, plan: RankPlan, node: str, local_rank: int) -> dict[str, str]:
    own = site.nics.nics[node]
    if plan.backend == "nccl":
        return {"NCCL_SOCKET_IFNAME": own[0].interface}
    return {"GLOO_SOCKET_IFNAME": own[local_rank % len(own)].interface}


def _outcome(plan: RankPlan, answers: Mapping[str, Answer]) -> RanksOutcome:
    errors = {node: "does not answer" for node in plan.nodes if node not in answers}
    errors |= {node: answer.error for node, answer in answers.items() if answer.error}
    results = answers[plan.nodes[0]].result if plan.nodes[0] in answers else None
    return RanksOutcome(result=results[0] if results and not errors else None, errors=errors)
