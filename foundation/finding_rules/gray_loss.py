"""Rules of gray loss under spraying."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

LOSSY_LINK = Rule(
    id="loss.lossy-link",
    severity=Severity.ERROR,
    title="Link that loses packets",
    meaning="Paths through the link bring fewer packets than even spraying explains.",
    impact="Every lost packet is sent again, and what waits for it waits for a timeout or a gap to be noticed.",
    evidence="Table `lossy_links`: estimated loss, its standard error, and the packets that it rests on.",
    next_step="look at both ports' error counters and optics, clean or replace the cable, then count again",
    thresholds=(
        Threshold(
            name="least_loss",
            default=0.001,
            kind="fraction",
            meaning="loss below which there is no finding, however certain",
            source="Judgement: a fifth of the least loss that SprayCheck looks for.",
            most=1.0,
        ),
        Threshold(
            name="false_alarms",
            default=0.01,
            kind="fraction",
            meaning="chance that a network without a fault has a finding, over all of its links together",
            source="Judgement: one false alarm in a hundred looks.",
            least=1e-9,
            most=0.5,
        ),
    ),
)
GRAY_LOSS = (LOSSY_LINK,)
