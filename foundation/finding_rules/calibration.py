"""Rules of calibrations: what measurements leave open."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

NOT_DETERMINED = Rule(
    id="fit.not-determined",
    severity=Severity.WARNING,
    title="Parameter that the measurements do not determine",
    meaning="A parameter of the model stands in the measured times, and they do not say what it is.",
    impact="The profile keeps the base's value: what is predicted with it rests on that, not on the measurements.",
    evidence="Table `fitted_parameters`: the 90 % interval, the largest part that it has of a measured time, and which "
    "parameters it cannot be told from.",
    next_step="measure what the verdict names",
)
POOR_FIT = Rule(
    id="fit.poor-fit",
    severity=Severity.WARNING,
    title="Times that the fitted model does not explain",
    meaning="Modelled times of a series are far from the measured ones, in the median of their sizes.",
    impact="Predictions by the profile are off by as much for this series, whatever the intervals of its values.",
    evidence="Table `fitted_times`: modelled over measured time of each size.",
    next_step="look at the sizes with the largest errors; fit series of other systems, protocols or algorithms by "
    "themselves",
    thresholds=(
        Threshold(
            name="error",
            default=0.15,
            kind="fraction",
            meaning="median error of a series above which there is a finding",
            source="Judgement: published curves leave 1 to 3 %; benchmarks on a busy machine repeat within 10 to 15 %.",
        ),
    ),
)

FITS = (NOT_DETERMINED, POOR_FIT)
