"""Findings of a validation: a busy machine, and predictions outside their band.

Shapes: P probes, K rounds.
"""

from collections.abc import Iterator

import numpy as np

from fabrictune.foundation.finding_rules.collectives import BUSY_MACHINE, PREDICTION_OFF
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.units import format_bytes, format_duration
from fabrictune.validate.local_measurement import LocalMeasurement
from fabrictune.validate.summary import ValidationSummary


def others_share(measurement: LocalMeasurement) -> float:
    """Return the fraction of the processors that others had, 0 where the system does not say."""
    machine = measurement.machine
    return 0.0 if machine is None else machine.others_fraction + machine.steal_fraction


def busy_machine(measurement: LocalMeasurement, rules: RuleSettings = CATALOG_SETTINGS) -> Iterator[Finding]:
    """Yield a finding for the probe that spreads most, if it spreads widely, and one for processors others had."""
    low_P, high_P = percentiles(measurement.probe_ps_PK, (0.25, 0.75))
    widest = int(np.argmax(high_P / low_P))
    limit = rules.threshold(BUSY_MACHINE, "quartiles")
    if high_P[widest] > limit * low_P[widest]:
        yield BUSY_MACHINE.finding(
            entity=f"{measurement.probe_P[widest]} of {format_bytes(measurement.bytes_P[widest])}",
            expected=f"quartiles within a factor of {limit:g}",
            actual=f"quartiles of {format_duration(low_P[widest])} and {format_duration(high_P[widest])}",
            confidence=Confidence.MEASURED,
            evidence=("table calibration",),
        )
    machine, most = measurement.machine, rules.threshold(BUSY_MACHINE, "others")
    if machine is not None and others_share(measurement) > most:
        yield BUSY_MACHINE.finding(
            entity="machine",
            expected=f"others take at most {most:.0%} of its processors",
            actual=f"others took {machine.others_fraction:.0%}, and the hypervisor {machine.steal_fraction:.0%}",
            confidence=Confidence.MEASURED,
            evidence=("run.json: processors",),
        )


def missed_predictions(summary: ValidationSummary, rules: RuleSettings = CATALOG_SETTINGS) -> Iterator[Finding]:
    """Yield a finding for every row whose ratio of simulated to measured lies outside the band with its interval."""
    low, high = (rules.threshold(PREDICTION_OFF, name) for name in ("lowest", "highest"))
    for row in summary.rows:
        if row.is_outside(low, high):
            yield PREDICTION_OFF.finding(
                entity=f"{row.what} of {format_bytes(row.num_bytes)}",
                expected=f"{low:g} to {high:g} times measured",
                actual=(
                    f"simulated {format_duration(row.simulated_ps)}, measured {format_duration(row.measured_ps)}:"
                    f" {row.ratio:.2f} times measured ({row.ratio_low:.2f} to {row.ratio_high:.2f})"
                ),
                confidence=Confidence.PREDICTED,
                evidence=("table comparison",),
            )
