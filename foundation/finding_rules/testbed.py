"""Rules of a testbed's links."""

from fabrictune.foundation.finding_rules.schema import Rule
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
TESTBED = (LOSSY, FLAPPED, SLOW)
