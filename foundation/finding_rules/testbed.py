"""Rules of a testbed's links."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

LOSSY = Rule(
    id="testbed.link-loss",
    severity=Severity.ERROR,
    title="Link that loses packets",
    meaning="The receiving port discards at least one in a thousand of the packets that the sending port has sent.",
    impact="Every lost packet is sent again, and what waits for it waits for a timeout or a gap to be noticed.",
    evidence="Counters of both ports: packets sent at one, packets discarded as they came in at the other.",
    next_step="heal the link, or look at what filters its receiving port",
)
FLAPPED = Rule(
    id="testbed.link-flap",
    severity=Severity.ERROR,
    title="Link that went down",
    meaning="The carrier of both ports was lost while it was looked at.",
    impact="What is sent meanwhile is lost; connections go on with their next retransmission, jobs may end.",
    evidence="The kernel's counters of carrier changes.",
    next_step="see who took the link down, and whether it is up",
)
SLOW = Rule(
    id="testbed.link-slow",
    severity=Severity.ERROR,
    title="Link slower than planned",
    meaning="While packets waited for the port, it sent steadily at less than 90 % of its planned rate.",
    impact="Every flow over the link gets less than its share, and a collective is as slow as its slowest flow.",
    evidence="Bytes sent in five windows in a row at both ends of which the port's queue was not empty.",
    next_step="compare the port's shaper with the planned fabric",
)
WINDOW = Threshold(
    name="steps",
    default=5,
    kind="count",
    meaning="steps in a row of which the median has to be beyond what is predicted",
    source="Judgement: one outlier, or two, leave a median of five where it is.",
    least=3,
)
STEP_LONGER = Rule(
    id="testbed.step-longer",
    severity=Severity.ERROR,
    title="Steps longer than predicted",
    meaning="The median of several steps in a row is above the interval that was predicted for them.",
    impact="Something changed after the calibration: the job is slower than its network and its own past explain.",
    evidence="The network's part of a step on the kernel's own paths, what a step took beside it in the calibration, "
    "and the links that were busy longer than their bytes take.",
    next_step="look at the links that are named; where none is, at the hosts",
    thresholds=(
        WINDOW,
        Threshold(
            name="margin",
            default=0.1,
            kind="fraction",
            meaning="least half width of the interval, as a share of the predicted step",
            source="Measured: on a quiet machine steps are predicted within 10 % (docs/lab_log.md, 2026-11-28).",
        ),
        Threshold(
            name="deviations",
            default=4,
            kind="factor",
            meaning="half width of the interval in standard deviations of the calibration's steps, by 1.4826 MAD",
            source="Judgement: six steps say little of their own spread.",
        ),
    ),
    other_severities=((Severity.WARNING, "no link is named, and ranks wait for processors that much longer"),),
)
LINK_BUSY = Rule(
    id="testbed.link-busy",
    severity=Severity.ERROR,
    title="Link busy longer than its bytes take",
    meaning="Packets waited for the port longer than its planned bytes take at its planned rate, step after step.",
    impact="Collectives wait for their busiest link, and all ranks for these collectives.",
    evidence="Readings of the port's queue during the steps beside the bytes that a step's requests plan on it; three "
    "quarters of the other ports, which a busy machine would slow as well, were not as busy.",
    next_step="compare the port's shaper with the planned fabric",
    thresholds=(
        Threshold(
            name="factor",
            default=1.3,
            kind="factor",
            meaning="busy time over the planned, and over what three quarters of the loaded ports stay below",
            source="Measured: busy links of clean trainings reach 1.06; a link at 70 % of its rate gives 1.4.",
            least=1.0,
        ),
    ),
)
LINKS = (LOSSY, FLAPPED, SLOW)
TWIN = (STEP_LONGER, LINK_BUSY)
TESTBED = (*LINKS, *TWIN)
