"""Links of a testbed that were busy longer than a training's planned bytes take.

A port that packets wait for sends at its rate, so a slower one is busy longer for the same bytes, whatever others do. A
port is named where it was so by the median of several steps, by a factor, more than what three quarters of the loaded
ports stay below (a busy machine slows all), and by more readings than chance explains. What waits for a slow port
comes in bursts elsewhere, so beside the worst port another is named only if its excess is half of the worst's.

Shapes: P ports, W steps of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.finding_rules.testbed import LINK_BUSY
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.units import BITS_PER_BYTE
from fabrictune.topology.fabric import Fabric
from fabrictune.validate.testbed_training import StepEvent

LOADED_FRACTION = 0.1  # of the busiest port's time, from which on a port's is asked for
PEERS_QUANTILE = 0.75
MIN_ERRORS = 3.0  # standard errors of the number of readings
LEAST_OF_WORST = 0.5


@dataclass(frozen=True, kw_only=True)
class BusyLink:
    """A port that is busy longer than its planned bytes take."""

    port: int
    busy_s: float  # of a step
    planned_s: float
    sent_fraction: float  # of the planned bytes

    @property
    def factor(self) -> float:
        """Busy time over the planned."""
        return self.busy_s / self.planned_s


def busy_links(fabric: Fabric, events: Sequence[StepEvent], rules: RuleSettings) -> tuple[BusyLink, ...]:
    """Return the ports that were busy longer than planned in most of these steps, the busiest first."""
    plan, uses = events[-1].plan, [event.use for event in events if event.use]
    if plan is None or len(uses) < len(events):
        return ()
    planned_s_P = plan.wire_bytes_P * BITS_PER_BYTE / fabric.port_rate_bps_P
    loaded = np.nonzero(planned_s_P > LOADED_FRACTION * planned_s_P.max())[0]
    busy_s_WP = np.array([use.busy_s_P[loaded] for use in uses])
    factor_P = np.median(busy_s_WP, axis=0) / planned_s_P[loaded]
    usual = percentile(factor_P, PEERS_QUANTILE)
    is_longer_P = factor_P > rules.threshold(LINK_BUSY, "factor") * max(usual, 1.0)
    readings_per_s = sum(use.num_readings for use in uses) / sum(event.seconds for event in events)
    found = [
        BusyLink(
            port=port,
            busy_s=float(np.median([use.busy_s_P[port] for use in uses])),
            planned_s=float(planned_s_P[port]),
            sent_fraction=float(np.mean([use.sent_bytes_P[port] for use in uses]) / plan.wire_bytes_P[port]),
        )
        for port in loaded[is_longer_P & _is_beyond_chance_P(busy_s_WP, planned_s_P[loaded], readings_per_s)].tolist()
    ]
    worst = max((link.factor for link in found), default=1.0)
    kept = [link for link in found if link.factor - 1.0 >= LEAST_OF_WORST * (worst - 1.0)]
    return tuple(sorted(kept, key=lambda link: -link.factor))


def busiest(links: Sequence[BusyLink]) -> dict[int, BusyLink]:
    """Return each port's link where it was busiest, the busiest first."""
    ascending = sorted(links, key=lambda link: link.factor)
    found = {link.port: link for link in ascending}
    return dict(sorted(found.items(), key=lambda item: -item[1].factor))


def _is_beyond_chance_P(busy_s_WP: FloatArray, planned_s_P: FloatArray, readings_per_s: float) -> BoolArray:
    """Return whether ports were waited for in more readings than planned, by several standard errors of the number."""
    expected_P = len(busy_s_WP) * planned_s_P * readings_per_s
    return np.asarray(busy_s_WP.sum(axis=0) * readings_per_s > expected_P + MIN_ERRORS * np.sqrt(expected_P))
