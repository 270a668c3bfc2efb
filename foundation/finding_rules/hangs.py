"""Rules of jobs that stand still: who keeps them, which port is behind it, and sources that disagree."""

from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.findings import Severity

HELD_UP = Rule(
    id="hang.held-up",
    severity=Severity.ERROR,
    title="Process that the others wait for",
    meaning="Followed from all processes that wait, the waits end at this one; the finding says what is known of it.",
    impact="No process of the job goes on until this one does, or until a timeout ends them all.",
    evidence="Files of the job, quoted with their lines: what each process issued and completed, stacks, errors.",
    next_step="look at the process and its host; take its stack with `py-spy dump --pid PID` if there is none",
    other_severities=((Severity.WARNING, "other answers fit the evidence as well"),),
)
HUNG_PORT = Rule(
    id="hang.port",
    severity=Severity.ERROR,
    title="Port on the way of a request that does not complete",
    meaning="Queue pairs of a request that all members issued, and not all completed, go through this port.",
    impact="Packets lost here hold up the request, and with it the job, until the queue pairs run out of retries.",
    evidence="Connections of the NCCL log, their paths on the fabric, and counters of both ends of the link.",
    next_step="look at the cable and the optics of both ends; take the link out of service and start the job again",
    other_severities=((Severity.WARNING, "no counter confirms it, or other ports fit as well"),),
)
DISAGREEMENT = Rule(
    id="hang.disagreement",
    severity=Severity.WARNING,
    title="Sources that disagree about a process",
    meaning="Two sources name the process of a rank differently: they are of two starts of the job, or of two jobs.",
    impact="What they say is put together wrongly, or stays apart.",
    evidence="The names of the process in each source.",
    next_step="give the files of one start of the job only",
)

HANGS = (HELD_UP, HUNG_PORT, DISAGREEMENT)
