"""Checks of pauses: deadlock, storms, and ports that PFC has paused.

Without a watchdog there is a pause storm only if a port was paused for as long as SONiC's watchdog waits, all its
pauses together; where it was, nobody can tell.

Source: Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016 (pause storms, slow receivers); Zhu et al.,
"Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 2.2 (pauses between switches spread
congestion to flows that do not use the congested port).
"""

from collections.abc import Iterator

import numpy as np

from fabrictune.foundation.arrays import BoolArray
from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.simulation import PAUSE_STORM, PAUSED_HOSTS, PAUSED_SWITCHES, PFC_DEADLOCK
from fabrictune.foundation.records import Columns, Confidence, Finding
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration, format_fraction
from fabrictune.netsim.config.switch import WatchdogConfig
from fabrictune.netsim.deadlock import Deadlock
from fabrictune.netsim.outcome import MAX_NAMED, Outcome
from fabrictune.topology.fabric import NO_NIC
from fabrictune.topology.network import Network

NO_PFC = "PFC is off"


def check_deadlock(outcome: Outcome) -> CheckReport:
    """Return the check of a cycle of paused ports at the end of the run."""
    return run_check(
        PFC_DEADLOCK.id,
        f"{outcome.network.fabric.num_ports:,} ports at the end of the run",
        [_deadlocked(outcome.network, outcome.deadlock)],
        expected="no cycle of paused ports",
        actual="none" if outcome.config.pfc.enabled else NO_PFC,
    )


def check_storms(outcome: Outcome) -> CheckReport:
    """Return the check of pause storms."""
    rule, config, queues = PAUSE_STORM.id, outcome.config, outcome.tables.get("queues")
    longest_ps = int((queues or outcome.tables["ports"])["paused_ps"].max(initial=0))
    if config.pfc.watchdog is not None and queues is not None:
        subject = f"queues paused beyond {format_duration(config.pfc.watchdog.detect_ns * PS_PER_NS)}"
        found = [_stormed(outcome.network, queues)]
        return run_check(rule, subject, found, expected="no queue paused beyond its watchdog's limit", actual="none")
    limit_ps = WatchdogConfig().detect_ns * PS_PER_NS
    subject, limit = f"{outcome.network.fabric.num_ports:,} ports", format_duration(limit_ps)
    paused = f"no port paused for more than {format_duration(longest_ps)} in total" if longest_ps else "no port paused"
    if longest_ps >= limit_ps:
        reason = f"no watchdog is set (engine.pfc.watchdog), and a port was paused for {format_duration(longest_ps)}"
        return skip_check(rule, subject, reason)
    expected = f"no port paused for {limit} on end, SONiC's limit"
    return run_check(rule, subject, [], expected=expected, actual=paused if config.pfc.enabled else NO_PFC)


def check_pauses(outcome: Outcome) -> Iterator[CheckReport]:
    """Yield the checks of pauses: of switches, from which congestion spreads, and of hosts, where PFC begins."""
    is_host_P = outcome.network.fabric.port_nic_P != NO_NIC
    for rule, is_own_P, what in (
        (PAUSED_SWITCHES, ~is_host_P, "switch ports"),
        (PAUSED_HOSTS, is_host_P, "host ports"),
    ):
        yield run_check(
            rule.id,
            f"{int(is_own_P.sum()):,} {what}",
            [_paused(outcome, rule, is_own_P, what)],
            expected=_most_paused(outcome, rule),
            actual=_pauses(outcome, is_own_P, what) if outcome.config.pfc.enabled else NO_PFC,
        )


def _deadlocked(network: Network, deadlock: Deadlock | None) -> Finding | None:
    if deadlock is None:
        return None
    shown = "; ".join(network.fabric.link_label(port) for port in deadlock.ring[:MAX_NAMED])
    others, behind = len(deadlock.ring) - MAX_NAMED, len(deadlock.ports) - len(deadlock.ring)
    return PFC_DEADLOCK.finding(
        entity=shown + (f"; and {others} more" if others > 0 else ""),
        expected="no cycle of paused ports",
        actual=(
            f"a cycle of {len(deadlock.ring)} ports is never resumed and blocks {behind} more;"
            f" they hold {format_bytes(deadlock.held_bytes)}"
        ),
        confidence=Confidence.PREDICTED,
    )


def _stormed(network: Network, queues: Columns | None) -> Finding | None:
    if queues is None or not queues["pause_storms"].any():
        return None
    worst = int(np.argmax(queues["pause_storms"]))
    return PAUSE_STORM.finding(
        entity=f"{network.fabric.link_label(int(queues['port'][worst]))}, priority {int(queues['priority'][worst])}",
        expected="no queue paused beyond its watchdog's limit",
        actual=(
            f"{int(queues['pause_storms'][worst])} pause storms here, {int(queues['pause_storms'].sum())} in total;"
            f" {int(queues['dropped_packets'][worst])} packets dropped here"
        ),
        confidence=Confidence.PREDICTED,
    )


def _paused(outcome: Outcome, rule: Rule, is_own_P: BoolArray, what: str) -> Finding | None:
    ports = outcome.tables["ports"]
    paused_ps_P = np.where(is_own_P, ports["paused_ps"], 0)
    worst, end_ps = int(np.argmax(paused_ps_P)), outcome.run["end_ps"]
    limit = outcome.rules.threshold(rule, "paused")
    if not ports["pauses"][is_own_P].any() or (limit and paused_ps_P[worst] <= limit * end_ps):
        return None
    share = f", {format_fraction(paused_ps_P[worst] / end_ps)} of the run" if end_ps else ""
    return rule.finding(
        entity=outcome.network.fabric.link_label(worst),
        expected=_most_paused(outcome, rule),
        actual=f"paused for {format_duration(int(paused_ps_P[worst]))}{share}; {_pauses(outcome, is_own_P, what)}",
        confidence=Confidence.PREDICTED,
    )


def _most_paused(outcome: Outcome, rule: Rule) -> str:
    limit = outcome.rules.threshold(rule, "paused")
    return f"no port paused for more than {format_fraction(limit)} of the run" if limit else "no port paused by PFC"


def _pauses(outcome: Outcome, is_own_P: BoolArray, what: str) -> str:
    pauses_P = np.where(is_own_P, outcome.tables["ports"]["pauses"], 0)
    return (
        f"{what} paused: {int((pauses_P > 0).sum()):,}, pauses: {int(pauses_P.sum()):,}"
        if pauses_P.any()
        else "no pause"
    )
