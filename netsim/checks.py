"""Checks of a run: incomplete transfers, deadlock, pauses, lost, repeated and reordered packets.

Whether a packet was lost for want of buffer is known where priorities count it, or where nothing else loses packets.
Without a watchdog there is a pause storm only if a port was paused for as long as SONiC's watchdog waits, all its
pauses together; where it was, nobody can tell.

Source: Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016 (pause storms, slow receivers); Zhu et al.,
"Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 2.2 (pauses between switches spread
congestion to flows that do not use the congested port).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.simulation import (
    DROPPED_PACKETS,
    LOSSLESS_DROPS,
    PAUSE_STORM,
    PAUSED_HOSTS,
    PAUSED_SWITCHES,
    PFC_DEADLOCK,
    RECEIVER_NOT_READY,
    REORDERED_PACKETS,
    SAMPLES_TRUNCATED,
    SPURIOUS_RETRANSMISSIONS,
    UNFINISHED_TRANSFERS,
)
from fabrictune.foundation.records import Columns, Confidence, Finding
from fabrictune.foundation.retransmission import rnr_wait_ps
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration, format_fraction
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import REORDERING_MODES
from fabrictune.netsim.config.switch import WatchdogConfig
from fabrictune.netsim.deadlock import Deadlock
from fabrictune.topology.fabric import NO_NIC
from fabrictune.topology.network import Network

MAX_NAMED = 10  # transfers or ports named in one finding
NO_PFC = "PFC is off"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the checks of a run look at."""

    network: Network
    tables: Mapping[str, Columns]
    run: Mapping[str, Any]  # the record's head, with `outcome`, `end_ps` and `packets`
    config: PacketConfig
    deadlock: Deadlock | None
    rules: RuleSettings = CATALOG_SETTINGS

    @property
    def lost_P(self) -> IntArray:
        """Packets lost behind each port, those lost to faults left out."""
        lost_P = self.tables["ports"]["dropped_packets"].copy()
        if by_fault := self.tables.get("drops"):
            np.subtract.at(lost_P, by_fault["port"], by_fault["packets"])
        return lost_P

    @property
    def lost_lossless_P(self) -> IntArray:
        """Packets of lossless priorities that found no buffer behind each port."""
        config, lost_P = self.config, np.zeros(self.network.fabric.num_ports, np.int64)
        if queues := self.tables.get("queues"):
            lossless = [entry.priority for entry in config.queues.priorities if entry.lossless]
            is_lossless_X = np.isin(queues["priority"], lossless)
            np.add.at(lost_P, queues["port"][is_lossless_X], queues["input_dropped_packets"][is_lossless_X])
        elif config.pfc.enabled and not config.loss_fraction:
            lost_P = self.lost_P
        return lost_P

    @property
    def num_sent(self) -> int:
        """Data packets sent, repeated ones included."""
        return int(self.tables["transfers"]["packets_sent"].sum())

    @property
    def num_repeated(self) -> int:
        """Data packets sent again."""
        return int(self.tables["transfers"]["packets_retransmitted"].sum())


def check_run(outcome: Outcome) -> CheckReport:
    """Return the checks of a run without regard to its faults, and their findings."""
    tables, config, packets = outcome.tables, outcome.config, outcome.run["packets"]
    sent = f"{outcome.num_sent:,} data packets sent"
    transfers = f"{len(tables['transfers']['transfer']):,} transfers"
    return join_reports(
        run_check(
            PFC_DEADLOCK.id,
            f"{outcome.network.fabric.num_ports:,} ports at the end of the run",
            [_deadlocked(outcome.network, outcome.deadlock)],
            expected="no cycle of paused ports",
            actual="none" if config.pfc.enabled else NO_PFC,
        ),
        run_check(
            UNFINISHED_TRANSFERS.id,
            transfers,
            [_unfinished(tables["transfers"], outcome.run["outcome"])],
            expected="all transfers to complete",
            actual="all did",
        ),
        _check_lossless(outcome),
        _check_loss(outcome, sent),
        _check_storms(outcome),
        *_check_pauses(outcome),
        _check_repeats(outcome),
        run_check(
            REORDERED_PACKETS.id,
            sent,
            [_reordered(tables["transfers"], packets, config)],
            expected="no packet sent again because it was overtaken",
            actual=_in_order(outcome),
        ),
        run_check(
            RECEIVER_NOT_READY.id,
            transfers,
            [_refused(packets["data_refused"], outcome)],
            expected="a posted receive for every message",
            actual="receives are not limited"
            if config.transport.rnr.receives is None
            else f"{packets['data_refused'] or 'no'} RNR NAKs",
        ),
    )


def check_samples(tables: Mapping[str, Columns], *, are_complete: bool) -> CheckReport:
    """Return the check of a probe: whether the record has all its samples."""
    num_samples = sum(len(tables[name]["time_ps"]) for name in ("samples", "flow_samples"))
    truncated = SAMPLES_TRUNCATED.finding(
        entity="probe",
        expected="samples until the end of the run",
        actual=f"only the first {num_samples:,} samples are kept",
        confidence=Confidence.CONFIGURED,
    )
    found = [] if are_complete else [truncated]
    expected = "samples until the end of the run"
    return run_check(SAMPLES_TRUNCATED.id, f"{num_samples:,} samples", found, expected=expected, actual="all")


def _check_loss(outcome: Outcome, sent: str) -> CheckReport:
    num_lost = int((outcome.lost_P - outcome.lost_lossless_P).sum())
    actual = f"{_of_sent(num_lost, outcome)} lost" if num_lost else "no packet lost"
    return run_check(DROPPED_PACKETS.id, sent, [_dropped(outcome)], expected=_most_lost(outcome), actual=actual)


def _most_lost(outcome: Outcome) -> str:
    limit = outcome.rules.threshold(DROPPED_PACKETS, "loss")
    return f"at most {format_fraction(limit)} of packets lost" if limit else "no packet loss"


def _check_lossless(outcome: Outcome) -> CheckReport:
    config = outcome.config
    rule, subject = LOSSLESS_DROPS.id, "packets of lossless classes"
    has_lossless = any(entry.lossless for entry in config.queues.priorities) or not config.queues.priorities
    expected = "room for every packet: headroom takes what is on its way when a port is paused"
    if not (config.pfc.enabled and has_lossless):
        return run_check(rule, subject, [], expected=expected, actual="no class is lossless")
    if not config.queues.priorities and config.loss_fraction and outcome.lost_P.any():
        reason = "random loss (engine.loss) and full buffers are counted together; set engine.queues.priorities"
        return skip_check(rule, subject, reason)
    return run_check(rule, subject, [_dropped_lossless(outcome)], expected=expected, actual="no packet lost")


def _check_storms(outcome: Outcome) -> CheckReport:
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


def _check_pauses(outcome: Outcome) -> Iterator[CheckReport]:
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


def _check_repeats(outcome: Outcome) -> CheckReport:
    """Return the check of repeats without a cause, which is possible where nothing else makes senders repeat."""
    rule, subject = SPURIOUS_RETRANSMISSIONS.id, f"{outcome.num_repeated:,} data packets sent again"
    causes = {
        "packets were lost": outcome.tables["ports"]["dropped_packets"].any(),
        "packets were trimmed": outcome.run["packets"].get("data_trimmed", 0),
        "receivers were not ready": outcome.run["packets"]["data_refused"],
        "switches reorder packets": outcome.config.path_choice.mode in REORDERING_MODES,
        "paths changed": len(outcome.network.epochs) > 1,
    }
    cause = next((text for text, is_one in causes.items() if is_one), "")
    if outcome.num_repeated and cause:
        return skip_check(rule, subject, f"{cause}, so repeats are due, and which are not cannot be told")
    return run_check(rule, subject, [_repeated(outcome)], expected="none where no packet is lost", actual="none")


def _in_order(outcome: Outcome) -> str:
    mode = outcome.config.path_choice.mode
    if mode not in REORDERING_MODES:
        return f"path choice {mode} keeps the order"
    return f"{outcome.run['packets']['data_out_of_order']:,} packets overtaken, within the reorder window"


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


def _unfinished(transfers: Columns, outcome: str) -> Finding | None:
    rows = np.nonzero(transfers["acknowledged_ps"] < 0)[0]
    if not len(rows):
        return None
    next_steps = {
        "stalled": "look for queue pairs out of retries (losses, a path without an end) behind these transfers",
        "time-limit": "raise time_limit, or look at what delays these transfers",
        "interrupted": "run again to the end",
    }
    ends = {"stalled": "run stalled", "time-limit": "run reached its time limit", "interrupted": "run interrupted"}
    return UNFINISHED_TRANSFERS.finding(
        entity=f"transfers {_some(rows)}",
        expected="all transfers to complete",
        actual=f"{len(rows)} of {len(transfers['transfer'])} transfers never completed; {ends[outcome]}",
        next_step=next_steps[outcome],
        confidence=Confidence.PREDICTED,
    )


def _dropped_lossless(outcome: Outcome) -> Finding | None:
    lost_P = outcome.lost_lossless_P
    if not lost_P.any():
        return None
    worst = int(np.argmax(lost_P))
    return LOSSLESS_DROPS.finding(
        entity=outcome.network.fabric.link_label(worst),
        expected="no packet of a lossless class lost",
        actual=f"{int(lost_P[worst]):,} packets lost here; {_of_sent(int(lost_P.sum()), outcome)} lost in total",
        confidence=Confidence.PREDICTED,
    )


def _dropped(outcome: Outcome) -> Finding | None:
    dropped_P = outcome.lost_P - outcome.lost_lossless_P
    if dropped_P.sum() <= outcome.rules.threshold(DROPPED_PACKETS, "loss") * outcome.num_sent:
        return None
    worst = int(np.argmax(dropped_P))
    return DROPPED_PACKETS.finding(
        entity=outcome.network.fabric.link_label(worst),
        expected=_most_lost(outcome),
        actual=f"{int(dropped_P[worst]):,} packets lost here; {_of_sent(int(dropped_P.sum()), outcome)} lost in total",
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


def _repeated(outcome: Outcome) -> Finding | None:
    if not outcome.num_repeated:
        return None
    return SPURIOUS_RETRANSMISSIONS.finding(
        entity="senders",
        expected="no packet sent again where none is lost",
        actual=f"{_of_sent(outcome.num_repeated, outcome)} retransmitted",
        confidence=Confidence.PREDICTED,
    )


def _of_sent(num_packets: int, outcome: Outcome) -> str:
    share = f" ({format_fraction(num_packets / outcome.num_sent)})" if outcome.num_sent else ""
    return f"{num_packets:,} of {outcome.num_sent:,} data packets{share}"


def _reordered(transfers: Columns, packets: Mapping[str, int], config: PacketConfig) -> Finding | None:
    """Return a finding about spurious retransmissions caused by reordering."""
    num_resent, num_early = int(transfers["packets_retransmitted"].sum()), packets["data_out_of_order"]
    if config.path_choice.mode not in REORDERING_MODES or not num_early:
        return None
    is_selective = config.transport.is_selective
    if is_selective and num_resent <= packets["dropped"] + packets.get("data_trimmed", 0):
        return None
    return REORDERED_PACKETS.finding(
        entity=f"path choice {config.path_choice.mode}",
        expected=(
            "reordering within the reorder window" if is_selective else "in-order delivery, which go-back-N requires"
        ),
        actual=f"{num_early} packets arrived out of order and {num_resent} were retransmitted",
        next_step=(
            "raise transport.reorder_window above the difference in delay between paths"
            if is_selective
            else "use selective repeat, or a path choice that keeps order: flowlets with a longer gap, weighted, hash"
        ),
        confidence=Confidence.PREDICTED,
    )


def _refused(num_refused: int, outcome: Outcome) -> Finding | None:
    if num_refused <= outcome.rules.threshold(RECEIVER_NOT_READY, "naks"):
        return None
    wait = format_duration(rnr_wait_ps(outcome.config.transport.rnr.timer_code))
    return RECEIVER_NOT_READY.finding(
        entity="receivers",
        expected="a posted receive for every message",
        actual=f"{num_refused:,} RNR NAK{'' if num_refused == 1 else 's'}, each of which delayed the sender by {wait}",
        confidence=Confidence.PREDICTED,
    )


def _some(rows: np.ndarray) -> str:
    shown = ", ".join(str(row) for row in rows[:MAX_NAMED])
    return shown + (f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else "")
