"""Findings of a validation: a busy machine, and predictions outside their band.

Shapes: E sizes of exchanges, K repetitions.
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


def busy_machine(measurement: LocalMeasurement, rules: RuleSettings = CATALOG_SETTINGS) -> Iterator[Finding]:
    """Yield a finding for the exchanges that spread most, if they spread widely."""
    low_E, high_E = percentiles(measurement.exchange_ps_EK, (0.25, 0.75))
    widest = int(np.argmax(high_E / low_E))
    limit = rules.threshold(BUSY_MACHINE, "quartiles")
    if high_E[widest] > limit * low_E[widest]:
        yield BUSY_MACHINE.finding(
            entity=f"exchange of {format_bytes(measurement.exchange_bytes_E[widest])}",
            expected=f"quartiles within a factor of {limit:g}",
            actual=f"quartiles of {format_duration(low_E[widest])} and {format_duration(high_E[widest])}",
            confidence=Confidence.MEASURED,
            evidence=("table calibration",),
        )


def missed_predictions(summary: ValidationSummary, rules: RuleSettings = CATALOG_SETTINGS) -> Iterator[Finding]:
    """Yield a finding for every row whose median ratio of simulated to measured lies outside the band."""
    low, high = (rules.threshold(PREDICTION_OFF, name) for name in ("lowest", "highest"))
    for row in summary.rows:
        if not low <= row.ratio <= high:
            yield PREDICTION_OFF.finding(
                entity=f"{row.what} of {format_bytes(row.num_bytes)}",
                expected=f"{low:g} to {high:g} times measured",
                actual=(
                    f"simulated {format_duration(row.simulated_ps)}, measured {format_duration(row.measured_ps)}:"
                    f" {row.ratio:.2f} times measured"
                ),
                confidence=Confidence.PREDICTED,
                evidence=("table comparison",),
            )
