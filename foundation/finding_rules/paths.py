"""Rules of paths: collisions under ECMP, and paths discovered in a real network."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

_PROBES = "Replies to probes with increasing TTL, one 5-tuple for each source port."
_COMPARISON = "Discovered paths, compared with those that the scenario's fabric and routing predict."


def _load_thresholds(what: str) -> tuple[Threshold, ...]:
    return (
        Threshold(
            name="load",
            default=1.0,
            kind="fraction",
            meaning=f"offered load over the rate of the {what} above which there is a finding",
            source=f"Definition: at 100 % the {what} is full, above it is oversubscribed.",
        ),
        Threshold(
            name="error_load",
            default=2.0,
            kind="fraction",
            meaning="offered load over the rate from which the finding is an error",
            source="Judgement: flows then get half of their rate or less, as when two elephant flows collide.",
        ),
    )


LINK_OVERLOADED = Rule(
    id="ecmp.link-overloaded",
    severity=Severity.WARNING,
    title="Oversubscribed link",
    meaning="The hash puts more flows on a link than it can carry when all of them send at once.",
    impact="Its flows get less than their NICs can send, and the slowest flow decides when a collective ends.",
    evidence="Predicted: the paths of all queue pairs, each with its share of its NIC's rate; no packet is simulated.",
    next_step="place these ranks under the same leaf/rail group, or use more QPs per connection for smaller flows",
    thresholds=_load_thresholds("link"),
    other_severities=((Severity.ERROR, "the load reaches `error_load`"),),
)
RECEIVER_OVERLOADED = Rule(
    id="ecmp.receiver-overloaded",
    severity=Severity.WARNING,
    title="Oversubscribed receiver (incast)",
    meaning="More is sent to a NIC at once than it can receive.",
    impact="The last hop is congested whatever the paths; queues and pauses grow at its switch.",
    evidence="Predicted: the paths of all queue pairs, each with its share of its NIC's rate; no packet is simulated.",
    next_step="reduce the number of concurrent senders to this NIC; path selection does not help",
    thresholds=_load_thresholds("receiving NIC's port"),
    other_severities=((Severity.ERROR, "the load reaches `error_load` without the flows of a `workload: incast`"),),
)
POLARIZED_TIERS = Rule(
    id="ecmp.polarized-tiers",
    severity=Severity.WARNING,
    title="Polarized tiers",
    meaning="Two neighbouring tiers hash alike, so that flows that share an uplink below use only some uplinks above.",
    impact="Part of the upper links stays idle, and the others carry the load of all.",
    evidence="The configured hashes and seeds of both tiers, evaluated on random headers.",
    next_step="give one of the tiers another function, or a rotation of its own (routing: tiers)",
    other_severities=((Severity.ERROR, "all flows of a lower uplink use a single upper one"),),
)
UNNAMED_HOPS = Rule(
    id="probe.unnamed",
    severity=Severity.WARNING,
    title="Hops without a name",
    meaning="Addresses of hops are not in the file of names.",
    impact="Paths through these hops cannot be compared with the model.",
    evidence=_COMPARISON,
    next_step="give --names a file with a line `ADDRESS NODE:PORT` for each",
)
UNPREDICTED_PATHS = Rule(
    id="probe.unpredicted",
    severity=Severity.ERROR,
    title="Path that the model does not have",
    meaning="Probes took paths that the model gives to no source port.",
    impact="The fabric or the routes of the scenario are not those of the network, nor are its predictions.",
    evidence=_COMPARISON,
    next_step="compare the fabric of the scenario with the cabling and the routes",
)
MISSING_PATHS = Rule(
    id="probe.missing",
    severity=Severity.ERROR,
    title="Predicted path never taken",
    meaning="Paths that the model predicts for the probed source ports were never taken.",
    impact="Capacity is unused: links may be down, or tiers may hash alike.",
    evidence=_COMPARISON,
    next_step="look for links that are down, and for tiers that hash alike (polarization)",
)
CHOICE_DIFFERS = Rule(
    id="probe.choice-differs",
    severity=Severity.INFO,
    title="Source ports on other paths than predicted",
    meaning="Some source ports take another of the possible paths than the model predicts.",
    impact="Collisions of individual flows cannot be predicted; distributions over hash seeds still hold.",
    evidence=_COMPARISON,
    next_step="set the function, fields and seeds of these switches in `routing:`, where the vendor documents them",
)
REFUSED_PATHS = Rule(
    id="probe.refused",
    severity=Severity.ERROR,
    title="Probes rejected on the way",
    meaning="A hop reports that it cannot or may not forward the probes.",
    impact="Traffic of these source ports may not reach the target either.",
    evidence=_PROBES,
    next_step="look for a filter, or a missing route or neighbour, at the hop that rejects",
)
SILENT_TARGET = Rule(
    id="probe.silent",
    severity=Severity.WARNING,
    title="Target that does not answer",
    meaning="Nothing answers beyond the last known hop.",
    impact="The rest of these paths is unknown.",
    evidence=_PROBES,
    next_step="an RDMA adapter drops probes silently: check that the last hop is the target's own switch",
)
CUT_PATHS = Rule(
    id="probe.cut",
    severity=Severity.WARNING,
    title="Probing stopped before the target",
    meaning="The largest TTL was reached before the target.",
    impact="The rest of these paths is unknown.",
    evidence=_PROBES,
    next_step="raise --max-hops",
)
NOTHING_ANSWERS = Rule(
    id="probe.nothing-answers",
    severity=Severity.ERROR,
    title="No hop answers",
    meaning="No hop answers any probe of these source ports.",
    impact="Nothing is known of these paths.",
    evidence=_PROBES,
    next_step="check whether ICMP is filtered on the way, and whether this machine's own firewall drops it",
)
HOP_UNKNOWN = Rule(
    id="probe.hop-unknown",
    severity=Severity.WARNING,
    title="Unknown hop",
    meaning="A hop on the way does not answer some source ports.",
    impact="Paths that differ only there look alike.",
    evidence=_PROBES,
    next_step="lower --rate or raise --attempts: a hop that limits its ICMP replies then answers more of them",
)
PATH_CHANGED = Rule(
    id="probe.path-changed",
    severity=Severity.WARNING,
    title="Flow with two paths",
    meaning="Different hops answered probes of the same source port at the same distance.",
    impact="A flow whose packets take several paths arrives out of order.",
    evidence=_PROBES,
    next_step="probe again: a route changed meanwhile, or packets of one flow are sprayed over several paths",
)

COLLISIONS = (LINK_OVERLOADED, RECEIVER_OVERLOADED, POLARIZED_TIERS)
PROBES = (
    UNNAMED_HOPS,
    UNPREDICTED_PATHS,
    MISSING_PATHS,
    CHOICE_DIFFERS,
    REFUSED_PATHS,
    SILENT_TARGET,
    CUT_PATHS,
    NOTHING_ANSWERS,
    HOP_UNKNOWN,
    PATH_CHANGED,
)
