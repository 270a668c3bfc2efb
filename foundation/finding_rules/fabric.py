"""Rules of fabrics: plausibility, cabling, and changes between two versions."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

_MAJORITY_SOURCE = "Judgement: no file says what was meant, so what more than half of the peers have is expected."
_LIKE_WITH_LIKE = "The fabric as imported or built; peers are compared with one another, not with a design."
_BOTH_FABRICS = "Both fabrics by the names of their nodes and ports."


def _majority(what: str) -> Threshold:
    return Threshold(
        name="majority",
        default=0.5,
        kind="fraction",
        meaning=f"share of {what} above which their common value is expected of the others",
        source=_MAJORITY_SOURCE,
        least=0.5,
        most=1.0,
    )


ISOLATED_NODE = Rule(
    id="fabric.isolated-node",
    severity=Severity.ERROR,
    title="Node without a link",
    meaning="A node of the fabric has no link.",
    impact="Nothing can be sent from or to it, and a file that lists it may lack its cables.",
    evidence="The fabric as imported or built.",
    next_step="cable the node, or remove it from the file",
)
PARTITION = Rule(
    id="fabric.partition",
    severity=Severity.ERROR,
    title="Partitioned fabric",
    meaning="A group of nodes has no path to the largest connected part of the fabric.",
    impact="Jobs across the parts cannot run, and files of switches between them may be missing.",
    evidence="The links of the fabric, whatever their rate or tier.",
    next_step="look for missing links, or read the files of the switches in between",
)
TIERLESS_SWITCHES = Rule(
    id="fabric.unknown-tier",
    severity=Severity.WARNING,
    title="Switches without a tier",
    meaning="Some switches have links, but their tier (leaf, spine, core) could not be derived.",
    impact="Their uplinks, link rates and levels are not compared with those of their peers: these checks are skipped.",
    evidence="Tiers given in the file, or counted from the hosts upwards.",
    next_step="add the hosts below them, from which tiers are derived, or give the tiers in the file",
)
ODD_LEVELS = Rule(
    id="fabric.odd-levels",
    severity=Severity.WARNING,
    title="Link that skips a tier or stays within one",
    meaning="Most links join neighbouring tiers; this one joins two others.",
    impact="A cable in the wrong port creates paths of another length, and traffic that routing does not balance.",
    evidence=_LIKE_WITH_LIKE,
    next_step="check both ends of the cable",
    thresholds=(_majority("the links"),),
)
UNEQUAL_RATE = Rule(
    id="fabric.unequal-rate",
    severity=Severity.WARNING,
    title="Link at another rate than its peers",
    meaning="Most links between the same two tiers run at one rate; this one runs at another.",
    impact="ECMP spreads flows evenly over unequal links, so that the slowest is congested first.",
    evidence=_LIKE_WITH_LIKE,
    next_step="look for a cable, module or setting of the wrong speed at either end",
    thresholds=(_majority("the links between the same two tiers"),),
)
UNEQUAL_UPLINKS = Rule(
    id="fabric.unequal-uplinks",
    severity=Severity.WARNING,
    title="Node whose uplinks differ from its tier",
    meaning="The number, the capacity or the spread of a node's uplinks differs from most nodes of its tier.",
    impact="A node with fewer or slower uplinks than its peers is congested before they are.",
    evidence=_LIKE_WITH_LIKE,
    next_step="check for uplinks that are missing, down, or in the wrong port",
    thresholds=(_majority("the nodes of the tier"),),
)
RAIL_MISCABLED = Rule(
    id="fabric.rail-miscabled",
    severity=Severity.ERROR,
    title="NIC cabled to the switch of another rail",
    meaning="Other hosts of the same ToR set have this rail at another switch.",
    impact="Traffic within a rail then crosses the spine, at higher latency and with collisions.",
    evidence="Hosts that share ToRs are compared with one another; two hosts that differ have no majority.",
    next_step="move the cable to the expected switch; it may be swapped with another cable of the same host",
    thresholds=(
        Threshold(
            name="shared_tors",
            default=0.5,
            kind="fraction",
            meaning="share of a host's ToRs that another host must have for the two to be compared",
            source="Judgement: with two swapped cables most of a host's ToRs are still those of its peers.",
            most=1.0,
        ),
    ),
)
ONE_SIDED = Rule(
    id="cabling.one-sided",
    severity=Severity.WARNING,
    title="Link seen from one end only",
    meaning="The table of one device lists a link that the table of its neighbour, which was read, does not list.",
    impact="The link may be down in one direction, recabled between two collections, or never have existed.",
    evidence="Neighbour tables or configurations of both devices.",
    next_step="collect the tables of both ends again at the same time; if they still differ, check the cable",
)
ONE_NAME = Rule(
    id="cabling.one-name",
    severity=Severity.WARNING,
    title="Devices of one name",
    meaning="Neighbours of one name have different chassis ids; each id is a node of its own.",
    impact="Joined, such devices would have the links of both; kept apart, a device with several ids is cut up.",
    evidence="Neighbour tables; hosts, and switches with a chassis id for every port, are not counted.",
    next_step="give every device a hostname of its own or, where it is one device, one chassis id for all its ports",
)
SPEED_MISMATCH = Rule(
    id="cabling.speed-mismatch",
    severity=Severity.ERROR,
    title="Link with two speeds",
    meaning="The two ends of a link report different speeds; the lower one is used.",
    impact="Such a link does not come up, or one of the two configurations is not the running one.",
    evidence="Neighbour tables or configurations of both devices.",
    next_step="set both ports to the speed that the cable and its modules support",
)
NODE_REMOVED = Rule(
    id="diff.node-removed",
    severity=Severity.ERROR,
    title="Node removed",
    meaning="A node of the earlier fabric is missing from the later one.",
    impact="Its capacity is gone, or its file was not collected.",
    evidence=_BOTH_FABRICS,
    next_step="find out whether the node was taken out, or is only missing from the collected files",
)
NODE_ADDED = Rule(
    id="diff.node-added",
    severity=Severity.INFO,
    title="Node added",
    meaning="A node of the later fabric is not in the earlier one.",
    impact="New nodes are often cabled differently from their peers.",
    evidence=_BOTH_FABRICS,
    next_step="check that the new nodes are cabled like their neighbours: fabrictune topo validate",
)
NODE_CHANGED = Rule(
    id="diff.node-changed",
    severity=Severity.WARNING,
    title="Node with another role",
    meaning="The kind, the tier or the group of a node has changed.",
    impact="Routing and all comparisons with peers depend on it.",
    evidence=_BOTH_FABRICS,
    next_step="check the node's role in the files",
)
LINK_REMOVED = Rule(
    id="diff.link-removed",
    severity=Severity.ERROR,
    title="Link removed",
    meaning="A link of the earlier fabric is missing from the later one, and neither of its ports has a new link.",
    impact="Capacity is lost, and the remaining links carry its flows.",
    evidence=_BOTH_FABRICS,
    next_step="look at both ports: a link that is down is missing from neighbour tables",
)
LINK_RECABLED = Rule(
    id="diff.link-recabled",
    severity=Severity.WARNING,
    title="Link moved to another port",
    meaning="A port has a link to another port than before.",
    impact="A swapped pair of cables breaks rails and the balance of uplinks.",
    evidence=_BOTH_FABRICS,
    next_step="compare with the work order; undo it if the move was not intended",
)
LINK_ADDED = Rule(
    id="diff.link-added",
    severity=Severity.INFO,
    title="Link added",
    meaning="A link of the later fabric is not in the earlier one.",
    impact="One more link in a group of equal ones makes the group unequal.",
    evidence=_BOTH_FABRICS,
    next_step="check that the new links are even: fabrictune topo validate",
)
RATE_CHANGED = Rule(
    id="diff.rate-changed",
    severity=Severity.ERROR,
    title="Link rate changed",
    meaning="A link runs at another rate than before.",
    impact="ECMP does not follow the rate of a link, so that a slower one is congested.",
    evidence=_BOTH_FABRICS,
    next_step="look for a lane, module or setting that changed the speed",
    other_severities=((Severity.INFO, "the new rate is higher"),),
)
DELAY_CHANGED = Rule(
    id="diff.delay-changed",
    severity=Severity.INFO,
    title="Link delay changed",
    meaning="The delay of a link, which follows from the length of its cable, has changed.",
    impact="PFC headroom depends on the length of the cable.",
    evidence=_BOTH_FABRICS,
    next_step="check the length of the cable where it matters for PFC headroom",
)
RAIL_CHANGED = Rule(
    id="diff.rail-changed",
    severity=Severity.WARNING,
    title="NIC on another rail",
    meaning="A NIC has another rail than before.",
    impact="Collectives pair NICs of one rail; a NIC on the wrong one sends across the spine.",
    evidence=_BOTH_FABRICS,
    next_step="check that the NIC's ToR serves the new rail",
)

PLAUSIBILITY = (
    ISOLATED_NODE,
    PARTITION,
    TIERLESS_SWITCHES,
    ODD_LEVELS,
    UNEQUAL_RATE,
    UNEQUAL_UPLINKS,
    RAIL_MISCABLED,
    ONE_SIDED,
    ONE_NAME,
    SPEED_MISMATCH,
)
CHANGES = (
    NODE_REMOVED,
    NODE_ADDED,
    NODE_CHANGED,
    LINK_REMOVED,
    LINK_RECABLED,
    LINK_ADDED,
    RATE_CHANGED,
    DELAY_CHANGED,
    RAIL_CHANGED,
)
