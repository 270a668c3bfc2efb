"""Rules of effective training time: of jobs that ran, and of planned ones."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

UNKNOWN_TIME = Rule(
    id="effective.unknown-time",
    severity=Severity.WARNING,
    title="Time of a job that its journal does not explain",
    meaning="Between two events of a job lies time that no event says anything about.",
    impact="Effective time and the parts beside it are right, but what the time went into is not known.",
    evidence="Table `effective_parts`: the part `unknown`; the notes say what the journal lacks.",
    next_step="see whether the driver was down, or its journal lost",
    thresholds=(
        Threshold(
            name="share",
            default=0.01,
            kind="fraction",
            meaning="share of the job's time above which there is a finding",
            source="Judgement: a tenth of what jobs of 90 % effective time lose in all.",
        ),
    ),
)
SAVE_INTERVAL = Rule(
    id="survive.save-interval",
    severity=Severity.WARNING,
    title="Interval between saves that costs time",
    meaning="Another interval between saves would make more of a job's time effective.",
    impact="Work is done again after each failure, or saves block the steps, more than need be.",
    evidence="Table `survival_intervals`: effective time over the interval.",
    next_step="save at the interval of the best effective time, or anywhere near it",
    thresholds=(
        Threshold(
            name="loss",
            default=0.01,
            kind="fraction",
            meaning="share of all time that the interval costs, above which there is a finding",
            source="Judgement: the optimum is flat, and a cost of a hundredth is well outside of it.",
        ),
    ),
)
SIMULATION_DIFFERS = Rule(
    id="survive.simulation-differs",
    severity=Severity.WARNING,
    title="Simulated effective time that differs from the closed form",
    meaning="The mean of the simulated runs is further from the closed form than its own error allows.",
    impact="The closed form describes a run without an end: a short run, or spares that are few, differ from it.",
    evidence="The outcome's `simulated_change_fraction` and its error.",
    next_step="take the simulated figure for this job, or plan for more days",
    thresholds=(
        Threshold(
            name="change",
            default=0.005,
            kind="fraction",
            meaning="difference beyond the simulation's error above which there is a finding",
            source="Judgement: half a point, below which no knob is worth turning.",
        ),
    ),
)

EFFECTIVE_TIME = (UNKNOWN_TIME, SAVE_INTERVAL, SIMULATION_DIFFERS)
