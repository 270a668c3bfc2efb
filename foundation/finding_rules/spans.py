"""Rules of a job's spans: stragglers, and a speed that decays."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

_WAITS = "Every rank waits for the slowest: its delay is added to the steps of the whole job."

SLOW_RANK = Rule(
    id="straggler.slow-rank",
    severity=Severity.WARNING,
    title="Rank slower than its peers",
    meaning="A rank's own passes, without its waits, take longer than those of ranks with the same work.",
    impact=_WAITS,
    evidence="Tables `stragglers` and `straggler_heat`: medians over steps, against the median of peers and their "
    "median absolute deviation.",
    next_step="check clocks, temperature and other load of its machine; then run without it",
    thresholds=(
        Threshold(
            name="excess",
            default=0.04,
            kind="fraction",
            meaning="excess over the peers' work above which there is a finding, if it is 8 standard deviations too",
            source="Judgement: MegaScale (NSDI'24) found hosts that were 10 % slow; 4 % is above the spread of equals.",
        ),
    ),
)
SLOW_LINK = Rule(
    id="straggler.slow-link",
    severity=Severity.WARNING,
    title="Link slower than others",
    meaning="Transfers of a rank, or of a group where the rank is not known, take longer than others of their sort.",
    impact="Messages and gradient sums of all its peers take as long as its own.",
    evidence="Table `stragglers`: time from the last member's issue to the first member's end of each request.",
    next_step="look at errors, rate and flaps of its NIC and cable, and at collisions on its paths",
)
STALLS = Rule(
    id="straggler.garbage-collection",
    severity=Severity.WARNING,
    title="Collections of garbage that stop ranks",
    meaning="Python's garbage collection stops one rank or another, each at its own step.",
    impact=_WAITS,
    evidence="Table `stragglers`: spans of collections.",
    next_step="collect on all ranks at once (recipe key collect_garbage_every), and find what makes the garbage",
    thresholds=(
        Threshold(
            name="share",
            default=0.02,
            kind="fraction",
            meaning="mean stall of the worst rank of each step, over the step, above which there is a finding",
            source="Judgement: twice what collections at a common step cost.",
        ),
    ),
)
DATA = Rule(
    id="straggler.data-loading",
    severity=Severity.WARNING,
    title="Waits for training data",
    meaning="A rank, or every rank, waits for its next batch.",
    impact=_WAITS,
    evidence="Table `stragglers`: spans of the wait for the loader.",
    next_step="look at the disk and the processor of the loader's machine",
    thresholds=(
        Threshold(
            name="share",
            default=0.05,
            kind="fraction",
            meaning="mean wait of a rank over the step, beyond that of the others, above which there is a finding",
            source="Judgement: batches are prepared beside the steps, so that none should wait.",
        ),
    ),
)
WRONG_CLOCK = Rule(
    id="straggler.wrong-clock",
    severity=Severity.INFO,
    title="Clock of a rank that is off",
    meaning="A rank's requests end at another time than those of all that wait with it, always by as much.",
    impact="Compared with its times, the rank seems late or early. They are moved before anything else is looked at.",
    evidence="Table `stragglers`: median difference between the ends of the same requests.",
    next_step="check the time synchronization (PTP, chrony) of its machine",
)
DECAY = Rule(
    id="decay.step-time",
    severity=Severity.WARNING,
    title="Steps that become longer over the run",
    meaning="The time of a step grows with the number of steps, so that MFU falls.",
    impact="A run of weeks loses what it gained in tuning.",
    evidence="Tables `decay_steps` and `decay_parts`: straight lines through means of neighbouring steps.",
    next_step="see which part grows, and on which ranks",
    thresholds=(
        Threshold(
            name="growth",
            default=0.03,
            kind="fraction",
            meaning="growth of the step over the run above which there is a finding, if it is beyond the steps' spread",
            source="Judgement: less is within the drift of steps on a shared machine.",
        ),
    ),
)

STRAGGLERS = (SLOW_RANK, SLOW_LINK, STALLS, DATA, WRONG_CLOCK)
DECAYS = (DECAY,)
