"""Rules of a fleet: nodes that cannot be read, and settings that disagree."""

from fabrictune.foundation.finding_rules.schema import FAMILY, Rule
from fabrictune.foundation.findings import Severity

NOT_COLLECTED = Rule(
    id="fleet.not-collected",
    severity=Severity.ERROR,
    title="Node that was not read",
    meaning="A host or switch did not answer, or not in a way that can be read.",
    impact="Nothing is known of its settings: it is in no comparison, and no check of it has passed.",
    evidence="Table `fleet_nodes`: state and detail of the node.",
    next_step="see what the node's state says, and ask it again",
)
AUDIT = Rule(
    id=f"audit.{FAMILY}",
    severity=Severity.ERROR,
    title="Setting that breaks a rule of the audit",
    meaning="A setting of a NIC, a switch or a job breaks a rule of the audit, of ours or of the site; the id ends in "
    "the rule's name.",
    impact="Each rule says why; `fabrictune fleet rules` lists them.",
    evidence="Node, file or command, and line of each value; table `fleet_facts` has them all.",
    next_step="see what the rule says",
    other_severities=(
        (Severity.INFO, "as the rule says"),
        (Severity.WARNING, "as the rule says"),
        (Severity.CRITICAL, "as the rule says"),
    ),
)

FLEETS = (NOT_COLLECTED, AUDIT)
