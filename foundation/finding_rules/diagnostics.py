"""Rules of the diagnostics of a job's nodes."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

NODE_FAILS = Rule(
    id="diagnose.node-fails",
    severity=Severity.ERROR,
    title="Node that fails a test",
    meaning="A test of the node found what needs no comparison: wrong bits, errors of a device, or no end.",
    impact="The job fails with this node, or computes wrongly on it.",
    evidence="Table `diagnosed_nodes`.",
    next_step="take the node out of the job",
)
NODE_SILENT = Rule(
    id="diagnose.node-silent",
    severity=Severity.ERROR,
    title="Node that does not answer",
    meaning="The node's process did not answer within the limit of a test, and was asked no more.",
    impact="Every collective that this node takes part in waits for it.",
    evidence="The note names the test in which it fell silent.",
    next_step="look at its process and the kernel's log (ps, dmesg), then take the node out",
)
NODE_SLOW = Rule(
    id="diagnose.node-slow",
    severity=Severity.ERROR,
    title="Node slower than its peers",
    meaning="A figure of the node is worse than its peers', also in the best of three tests.",
    impact="Synchronous training runs at the pace of its slowest node.",
    evidence="Table `diagnosed_nodes`: the figure, the median and the median absolute deviation (MAD) of all nodes.",
    next_step="compare its settings with those of another node, then test it again",
    thresholds=(
        Threshold(
            name="deviation",
            default=0.1,
            kind="fraction",
            meaning="additional time, as a share of the median node's, above which there is a finding",
            source="MegaScale (NSDI 2024), section 6.3: some hosts took 10 % longer; removing them gave 0.7 % of MFU.",
        ),
        Threshold(
            name="deviation_of_few",
            default=0.5,
            kind="fraction",
            meaning="the same for fewer nodes than `many_nodes`, of which a MAD says little",
            source="Judgement: well above what other work on a machine does to the best of three tests.",
        ),
        Threshold(
            name="spread",
            default=5.0,
            kind="factor",
            meaning="deviation from the median, in standard deviations by 1.4826 MAD, above which there is a finding",
            source="Judgement: five, as hundreds of nodes and several figures are compared at once.",
        ),
        Threshold(
            name="least_nodes",
            default=3,
            kind="count",
            meaning="number of nodes from which on they are compared",
            source="Judgement: of two, nothing says which is slow.",
            least=3,
        ),
        Threshold(
            name="many_nodes",
            default=8,
            kind="count",
            meaning="number of nodes from which on `deviation` applies",
            source="Judgement: the MAD of fewer is too uncertain.",
            least=3,
        ),
    ),
)
BITS_DIFFER = Rule(
    id="diagnose.bits-differ",
    severity=Severity.ERROR,
    title="Node whose training step has other bits",
    meaning="The same training step gave other bits on this node than on most nodes of its kind.",
    impact="Silent data corruption: gradients of this node are wrong, and nothing reports it.",
    evidence="Table `diagnosed_nodes`: the nodes' digests.",
    next_step="take the node out, and repeat the test there with other processors or GPUs disabled in turn",
)
GROUP_FAILS = Rule(
    id="diagnose.group-fails",
    severity=Severity.ERROR,
    title="Nodes that fail together",
    meaning="A group of nodes failed its test again, and no single node of it could be named.",
    impact="The fault lies between these nodes: a link, a switch, or a path that only this group uses.",
    evidence="Table `diagnosed_groups`: every group that was tested.",
    next_step="look at the links between these nodes (fabrictune topo validate, rdma counters)",
)
BELOW_PROFILE = Rule(
    id="diagnose.below-profile",
    severity=Severity.ERROR,
    title="Node slower than its hardware",
    meaning="A figure of the node is below what the hardware profile says that such a node reaches.",
    impact="Where all nodes have the same fault, a comparison between them shows nothing.",
    evidence="Table `diagnosed_nodes`, and the profile's value.",
    next_step="check power limit, clocks and cooling; or give the profile of this hardware (--hardware)",
    thresholds=(
        Threshold(
            name="share",
            default=0.8,
            kind="fraction",
            meaning="share of the profile's best rate below which there is a finding",
            source="Judgement: Azure's node health checks allow about as much below the usual rate.",
            most=1.0,
        ),
    ),
)

NODES = (NODE_FAILS, NODE_SILENT, NODE_SLOW, BITS_DIFFER, GROUP_FAILS, BELOW_PROFILE)
