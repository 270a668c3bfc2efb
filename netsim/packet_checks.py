"""Checks of packets: lost, repeated without a cause, reordered, and refused by receivers that were not ready.

Whether a packet was lost for want of buffer is known where priorities count it, or where nothing else loses packets.
"""

from collections.abc import Mapping

import numpy as np

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.simulation import (
    DROPPED_PACKETS,
    LOSSLESS_DROPS,
    RECEIVER_NOT_READY,
    REORDERED_PACKETS,
    SPURIOUS_RETRANSMISSIONS,
)
from fabrictune.foundation.records import Columns, Confidence, Finding
from fabrictune.foundation.retransmission import rnr_wait_ps
from fabrictune.foundation.units import format_duration, format_fraction
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import REORDERING_MODES
from fabrictune.netsim.outcome import Outcome


def check_loss(outcome: Outcome) -> CheckReport:
    """Return the check of all losses but those of lossless priorities for want of buffer."""
    num_lost = int((outcome.lost_P - outcome.lost_lossless_P).sum())
    actual = f"{_of_sent(num_lost, outcome)} lost" if num_lost else "no packet lost"
    return run_check(
        DROPPED_PACKETS.id, _sent(outcome), [_dropped(outcome)], expected=_most_lost(outcome), actual=actual
    )


def check_lossless(outcome: Outcome) -> CheckReport:
    """Return the check of buffers: lossless priorities lose nothing."""
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


def check_repeats(outcome: Outcome) -> CheckReport:
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


def check_order(outcome: Outcome) -> CheckReport:
    """Return the check of packets that were overtaken and therefore sent again."""
    return run_check(
        REORDERED_PACKETS.id,
        _sent(outcome),
        [_reordered(outcome.tables["transfers"], outcome.run["packets"], outcome.config)],
        expected="no packet sent again because it was overtaken",
        actual=_in_order(outcome),
    )


def check_refusals(outcome: Outcome) -> CheckReport:
    """Return the check of messages that found no posted receive."""
    num_refused = outcome.run["packets"]["data_refused"]
    return run_check(
        RECEIVER_NOT_READY.id,
        f"{len(outcome.tables['transfers']['transfer']):,} transfers",
        [_refused(num_refused, outcome)],
        expected="a posted receive for every message",
        actual="receives are not limited"
        if outcome.config.transport.rnr.receives is None
        else f"{num_refused or 'no'} RNR NAKs",
    )


def _sent(outcome: Outcome) -> str:
    return f"{outcome.num_sent:,} data packets sent"


def _most_lost(outcome: Outcome) -> str:
    limit = outcome.rules.threshold(DROPPED_PACKETS, "loss")
    return f"at most {format_fraction(limit)} of packets lost" if limit else "no packet loss"


def _in_order(outcome: Outcome) -> str:
    mode = outcome.config.path_choice.mode
    if mode not in REORDERING_MODES:
        return f"path choice {mode} keeps the order"
    return f"{outcome.run['packets']['data_out_of_order']:,} packets overtaken, within the reorder window"


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
