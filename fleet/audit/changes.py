"""A set of changes that would answer an audit: commands for NICs, patches for switches, settings of the job.

It is printed and never applied. A patch replaces a value where the switch's configuration has it (RFC 6902); a
rule without a fix, or whose right value is not known, has none here and is counted. Effects are predicted where a model
gives one: for NCCL's timers the longest silence that a queue pair survives.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.fleet.audit.report import Objection
from fabrictune.fleet.facts.derived import NCCL_TIMEOUT, retransmission_of
from fabrictune.fleet.facts.fact import Fact, FleetFacts
from fabrictune.rdma_bench.timers.nccl_defaults import RETRIES
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec, predict_retransmission
from fabrictune.rdma_bench.timers.profiles import DEFAULT_PROFILE, KNOWN_PROFILES

PFC_RULES = ("pfc-on-one-side", "pfc-differs")
TIMEOUT, RETRY_COUNT = "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One line."""

    node: str  # "" for the job
    kind: str  # nic, switch or env
    text: str
    rule: str
    effect: str = ""


def propose_changes(objections: Sequence[Objection], facts: FleetFacts) -> tuple[Change, ...]:
    """Return the changes, each once, by node."""
    changes: dict[tuple[str, str, str], Change] = {}
    for objection in objections:
        change = _change(objection, facts)
        if change is not None:
            changes.setdefault((change.node, change.kind, change.text), change)
    return tuple(sorted(changes.values(), key=lambda change: (change.kind, change.node, change.text)))


def patches_of(changes: Sequence[Change]) -> Mapping[str, list[Any]]:
    """Return the JSON patch of each switch."""
    patches: dict[str, list[Any]] = {}
    for change in changes:
        if change.kind == "switch":
            patches.setdefault(change.node, []).append(json.loads(change.text))
    return patches


def _change(objection: Objection, facts: FleetFacts) -> Change | None:
    rule, fact, target = objection.rule, objection.outcome.fact, objection.outcome.target
    if rule.id in PFC_RULES and target and target != "none":
        return Change(node=fact.node, kind="nic", text=_pfc_line(fact, target), rule=rule.id)
    if rule.fix is None or ("{expected}" in rule.fix[1] and not target):
        return None
    kind, line = rule.fix
    if kind == "switch":
        if not fact.pointer or not target:
            return None
        operation = {"op": "replace", "path": fact.pointer, "value": target}
        return Change(node=fact.node, kind=kind, text=json.dumps(operation), rule=rule.id)
    filled = line
    for name, value in (("node", fact.node), ("device", fact.device), ("expected", target)):
        filled = filled.replace(f"{{{name}}}", value)
    if kind == "env":
        return Change(node="", kind=kind, text=filled, rule=rule.id, effect=_timer_effect(filled, fact.node, facts))
    return Change(node=fact.node, kind=kind, text=filled, rule=rule.id)


def _pfc_line(fact: Fact, priorities: str) -> str:
    wanted = set(priorities.split(","))
    flags = ",".join("1" if str(priority) in wanted else "0" for priority in range(8))
    return f"mlnx_qos -i {fact.device} --pfc {flags}"


def _timer_effect(setting: str, node: str, facts: FleetFacts) -> str:
    """Return how a setting of NCCL's timers changes the longest flap that is survived, "" for other settings."""
    name, _, value = setting.partition("=")
    if name not in (TIMEOUT, RETRY_COUNT) or not value.isdecimal():
        return ""
    before, _ = retransmission_of(facts, node)
    timeout = int(value) if name == TIMEOUT else before.timeout_exponent if before else NCCL_TIMEOUT
    retries = int(value) if name == RETRY_COUNT else before.retries if before else RETRIES
    profile = KNOWN_PROFILES[DEFAULT_PROFILE]
    survived = [
        f"{predict_retransmission(spec, profile).longest_flap_ns / 1e9:.3g} s" if spec else "unknown"
        for spec in (before, RetransmissionSpec(timeout_exponent=timeout, retries=retries))
    ]
    return f"longest flap survived: {' -> '.join(survived)} (model of {profile.name})"


def by_node(changes: Sequence[Change], kind: str) -> Iterator[tuple[str, list[Change]]]:
    """Yield the changes of a kind, node by node."""
    nodes = dict.fromkeys(change.node for change in changes if change.kind == kind)
    for node in nodes:
        yield node, [change for change in changes if change.kind == kind and change.node == node]
