"""Rules of a cluster's validation."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

SHORTFALL = Threshold(
    name="shortfall",
    default=0.15,
    kind="fraction",
    meaning="share of the least expected rate that may be missing",
    source="Judgement: above what one TCP stream varies by from second to second on an idle fabric.",
    most=0.9,
)

NODE_MISSING = Rule(
    id="cluster.node-missing",
    severity=Severity.ERROR,
    title="Node that takes no part",
    meaning="The node could not be reached, its program did not start, or it stopped answering.",
    impact="Nothing was validated on it, and no flow to or from it was measured.",
    evidence="How it was tried, and the last line that it said.",
    next_step="see what the node's state says, and validate again: what is done is not repeated",
)
NIC_ABSENT = Rule(
    id="cluster.nic-absent",
    severity=Severity.ERROR,
    title="Planned NIC that is not there",
    meaning="The planned fabric has a NIC of which the node has no interface, neither by name nor by address.",
    impact="Its rail is not validated on this node.",
    evidence="The interfaces that are up and have an IPv4 address.",
    next_step="bring the interface up, or correct the planned fabric",
)
NODES_DIFFER = Rule(
    id="cluster.nodes-differ",
    severity=Severity.WARNING,
    title="Nodes with different software",
    meaning="The nodes have different versions of this package, of Python or torch.",
    impact="Ranks refuse one another, and figures of different nodes are not comparable.",
    evidence="The versions that the nodes named.",
    next_step="install one version on all nodes",
)
MISCABLED = Rule(
    id="cluster.miscabled",
    severity=Severity.ERROR,
    title="Cable that is not where it was planned",
    meaning="LLDP hears another neighbour on a port than the planned fabric has.",
    impact="Traffic takes links that nobody planned for it; rails may meet in one switch.",
    evidence="What LLDP hears, and the plan.",
    next_step="correct the cable, or the plan",
)
FLOW_LOW = Rule(
    id="cluster.flow-low",
    severity=Severity.ERROR,
    title="Flow below what this fabric should give",
    meaning="A flow got less than the least that it gets under any hash seed tried, in each of its trials.",
    impact="A job's ring is as slow as its slowest flow.",
    evidence="Table `cluster_measurements`: the flow's rate, prediction and limit.",
    next_step="compare speeds and counters of both ends and of the links between (fleet counters, topo probe)",
    thresholds=(SHORTFALL,),
)
ROUND_LOW = Rule(
    id="cluster.round-low",
    severity=Severity.ERROR,
    title="Concurrent flows below what this fabric should carry",
    meaning="Flows that run at once got less in total than under any hash seed tried.",
    impact="The fabric carries less than it was built for: links missing, slow, or not used by the hash.",
    evidence="Table `cluster_measurements`: the total, its prediction and limit.",
    next_step="see which flows are low, and compare the spines' port counters",
    thresholds=(SHORTFALL,),
)
FLOWS_UNSTEADY = Rule(
    id="cluster.flows-unsteady",
    severity=Severity.ERROR,
    title="Flows that are low on one trial and good on another",
    meaning="Flows that had the fabric to themselves were below their limit once, and not when measured again.",
    impact="Some paths are slow and others are not: a link between switches, which a job meets by chance.",
    evidence="The flows; their first rates are in table `cluster_measurements`.",
    next_step="compare speeds and drops of the switches' uplinks; where hosts were busy, measure again",
    thresholds=(
        Threshold(
            name="share",
            default=0.1,
            kind="fraction",
            meaning="share of the flows alone from which on there is a finding",
            source="Judgement: of a clean testbed's 40 flows none was; of one with a slow uplink of four, a fifth.",
        ),
        Threshold(
            name="least_flows",
            default=3,
            kind="count",
            meaning="number of such flows from which on there is a finding",
            source="Judgement: one or two are what another program on a host does.",
        ),
    ),
)
FLOW_FAILED = Rule(
    id="cluster.flow-failed",
    severity=Severity.ERROR,
    title="Flow that could not be measured",
    meaning="No connection came about between two NICs, or it broke.",
    impact="Ranks on these NICs cannot communicate.",
    evidence="The error of the sender.",
    next_step="check routes and addresses between the two: ping -I INTERFACE ADDRESS",
)
COLLECTIVE_SLOW = Rule(
    id="cluster.collective-slow",
    severity=Severity.ERROR,
    title="Collective slower than its messages",
    meaning="A collective took longer than the model's time of its ring on this fabric, times what software may add.",
    impact="Every step of a job waits for its collectives.",
    evidence="Table `cluster_measurements`: the time, its prediction and limit.",
    next_step="compare with the flows of the matrix: if they are good, look at the processes (fabrictune coll explain)",
    thresholds=(
        Threshold(
            name="slowdown",
            default=3.0,
            kind="factor",
            meaning="time over the predicted time above which there is a finding",
            source="Judgement: gloo copies and adds on the processors, which the model of its messages leaves out.",
            least=1.0,
        ),
    ),
)
PART_FAILED = Rule(
    id="cluster.part-failed",
    severity=Severity.ERROR,
    title="Stage that failed on a node",
    meaning="What the stage runs ended with an error.",
    impact="A job would end in the same way.",
    evidence="The first error, with its node.",
    next_step="run the same by hand on this node",
)
LOSS_NOT_FALLING = Rule(
    id="cluster.loss-not-falling",
    severity=Severity.ERROR,
    title="Training that does not learn",
    meaning="The loss of the training at the end of the validation is not below that of its first step.",
    impact="Gradients are wrong somewhere: data were changed on a node or on the way.",
    evidence="The loss of the first and last steps.",
    next_step="find the node: fabrictune train diagnose",
)
TIMEOUT_ORDER = Rule(
    id="cluster.timeout-order",
    severity=Severity.WARNING,
    title="Timeouts in the wrong order",
    meaning="A layer that should wait longer than another does not.",
    impact="The reason is in the finding.",
    evidence="The ladder of timeouts, which `fabrictune fleet timeouts` has whole.",
    next_step="change one of the two",
)
DRIFTED = Rule(
    id="cluster.drifted",
    severity=Severity.WARNING,
    title="Measurement worse than the baseline",
    meaning="A measurement is worse than in the baseline by more than the others have changed.",
    impact="Something of this cluster has changed since the baseline was made, on this subject alone.",
    evidence="Table `cluster_measurements` of both validations.",
    next_step="see what has changed since: fabrictune fleet audit on both dates",
    thresholds=(
        Threshold(
            name="deviation",
            default=0.15,
            kind="fraction",
            meaning="how much worse than the median change, as a share, from which on there is a finding",
            source="Judgement: above what one TCP stream varies by.",
        ),
        Threshold(
            name="spread",
            default=5.0,
            kind="factor",
            meaning="the same in standard deviations of all changes, by 1.4826 MAD",
            source="Judgement: five, as hundreds of measurements are compared at once.",
        ),
    ),
)

CLUSTERS = (
    NODE_MISSING,
    NIC_ABSENT,
    NODES_DIFFER,
    MISCABLED,
    FLOW_LOW,
    ROUND_LOW,
    FLOWS_UNSTEADY,
    FLOW_FAILED,
    COLLECTIVE_SLOW,
    PART_FAILED,
    LOSS_NOT_FALLING,
    TIMEOUT_ORDER,
    DRIFTED,
)
