"""Which link of a testbed is not as planned: lossy, flapping or slow, by its counters alone.

- *loss*: a port discards what comes in, though its sender counted it as sent. A full queue discards at the sender, so
  congestion is no loss.
- *flap*: both ports of a link lost their carrier.
- *slow*: a port for which packets wait sends at its rate, whatever other links do. So only windows count at both ends
  of which its queue was not empty, several in a row at one steady rate: a queue that fills and empties in between, as
  of traffic that waits for acknowledgements from behind a slow link, is not steady. A link that nothing waits for is
  never called slow, also where its traffic is.

A link that flaps or loses is not also called slow: its windows are not its own.

Shapes: P ports, W windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.checks import CheckReport, run_checks
from fabrictune.foundation.finding_rules.testbed import FLAPPED, LINKS, LOSSY, SLOW
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.units import BITS_PER_BYTE, format_rate
from fabrictune.testbed.counters import LinkReading
from fabrictune.topology.fabric import Fabric

MIN_LOSS_FRACTION = 0.001
MIN_LOST_PACKETS = 3
MIN_RATE_FRACTION = 0.9
MIN_WINDOWS = 5  # in a row, in which a queue waits
STEADY_FRACTION = 0.15  # by which their rates may be off their mean


@dataclass(frozen=True, kw_only=True)
class LinkUse:
    """What every port did between the first and the last of several readings."""

    fabric: Fabric
    duration_s: float
    sent_bytes_P: IntArray
    sent_packets_P: IntArray
    discarded_P: IntArray  # of what the port sent, where it arrived
    queue_drops_P: IntArray
    carrier_changes_P: IntArray
    best_busy_bps_P: FloatArray  # of windows throughout which packets waited; 0 without one
    steady_bps_P: FloatArray  # the highest mean of MIN_WINDOWS of them in a row at one rate; 0 without such

    @property
    def rate_bps_P(self) -> FloatArray:
        """The mean rate of each port."""
        return self.sent_bytes_P * BITS_PER_BYTE / self.duration_s


def link_use(fabric: Fabric, readings: Sequence[LinkReading]) -> LinkUse:
    """Return what the ports did over readings, of which there are two or more."""
    first, last = readings[0], readings[-1]
    waiting_WP = np.array([reading.waiting_bytes_P > 0 for reading in readings])
    change_WP = np.array([reading.carrier_changes_P for reading in readings])
    bytes_WP = np.diff([reading.sent_bytes_P for reading in readings], axis=0)
    rate_WP = bytes_WP * BITS_PER_BYTE / np.diff([reading.time_s_P for reading in readings], axis=0)
    is_busy_WP = waiting_WP[:-1] & waiting_WP[1:] & (np.diff(change_WP, axis=0) == 0)
    return LinkUse(
        fabric=fabric,
        duration_s=float(np.mean(last.time_s_P - first.time_s_P)),
        sent_bytes_P=last.sent_bytes_P - first.sent_bytes_P,
        sent_packets_P=last.sent_packets_P - first.sent_packets_P,
        discarded_P=(last.receive_drops_P - first.receive_drops_P)[fabric.port_peer_P],
        queue_drops_P=last.queue_drops_P - first.queue_drops_P,
        carrier_changes_P=last.carrier_changes_P - first.carrier_changes_P,
        best_busy_bps_P=np.where(is_busy_WP, rate_WP, 0.0).max(axis=0),
        steady_bps_P=_steady_bps_P(rate_WP, is_busy_WP),
    )


def check_links(use: LinkUse) -> CheckReport:
    """Return what is found of the links."""
    findings = [*_lossy(use), *_flapped(use), *_slow(use)]
    return run_checks([rule.id for rule in LINKS], _subject(use), findings)


def check_totals(use: LinkUse) -> CheckReport:
    """Return what totals say of the links, for which two readings are enough: losses and flaps."""
    return run_checks([LOSSY.id, FLAPPED.id], _subject(use), [*_lossy(use), *_flapped(use)])


def _subject(use: LinkUse) -> str:
    return f"{use.fabric.num_ports // 2:,} links"


def _steady_bps_P(rate_WP: FloatArray, is_busy_WP: BoolArray) -> FloatArray:
    """Return the highest rate at which each port sent steadily while packets waited, 0 where there is none."""
    highest_P = np.zeros(rate_WP.shape[1])
    for first in range(len(rate_WP) - MIN_WINDOWS + 1):
        rows = slice(first, first + MIN_WINDOWS)
        mean_P = rate_WP[rows].mean(axis=0)
        is_steady_P = (np.abs(rate_WP[rows] - mean_P) <= STEADY_FRACTION * mean_P).all(axis=0)
        highest_P = np.where(is_busy_WP[rows].all(axis=0) & is_steady_P, np.maximum(highest_P, mean_P), highest_P)
    return highest_P


def _is_lossy_P(use: LinkUse) -> BoolArray:
    enough_P = use.discarded_P >= np.maximum(MIN_LOST_PACKETS, MIN_LOSS_FRACTION * use.sent_packets_P)
    return np.asarray(enough_P, bool)


def _lossy(use: LinkUse) -> Iterator[Finding]:
    for port in np.nonzero(_is_lossy_P(use))[0].tolist():
        lost, sent = int(use.discarded_P[port]), int(use.sent_packets_P[port])
        yield LOSSY.finding(
            entity=use.fabric.link_label(port),
            actual=f"{lost:,} of {sent:,} packets discarded where they arrive",
            expected=f"less than {MIN_LOSS_FRACTION:.1%}",
            confidence=Confidence.MEASURED,
        )


def _flapped(use: LinkUse) -> Iterator[Finding]:
    peer_P = use.fabric.port_peer_P
    for port in np.nonzero((use.carrier_changes_P > 0) & (use.carrier_changes_P[peer_P] > 0))[0].tolist():
        if port < peer_P[port]:
            yield FLAPPED.finding(
                entity=use.fabric.link_label(port),
                actual=f"{use.carrier_changes_P[port]} changes of carrier",
                expected="none",
                confidence=Confidence.MEASURED,
            )


def _slow(use: LinkUse) -> Iterator[Finding]:
    planned_P, peer_P = use.fabric.port_rate_bps_P, use.fabric.port_peer_P
    explained_P = _is_lossy_P(use) | (use.carrier_changes_P > 0)
    is_slow_P = (use.steady_bps_P > 0) & (use.best_busy_bps_P < MIN_RATE_FRACTION * planned_P)
    for port in np.nonzero(is_slow_P & ~explained_P & ~explained_P[peer_P])[0].tolist():
        yield SLOW.finding(
            entity=use.fabric.link_label(port),
            actual=f"steadily {format_rate(float(use.steady_bps_P[port]))} while packets wait",
            expected=format_rate(int(planned_P[port])),
            confidence=Confidence.MEASURED,
        )
