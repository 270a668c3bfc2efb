"""Rules of counters: what rose between two snapshots of NICs."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

_EVIDENCE = "Table `nic_counters`: counters of the class before and after, and per GB sent where bytes were counted."

TIMEOUT_RETRANSMISSIONS = Rule(
    id="counters.timeout-retransmissions",
    severity=Severity.WARNING,
    title="Retransmissions after a timeout",
    meaning="Queue pairs of the NIC sent packets again because no acknowledgement came in time.",
    impact="Each of them stalls its queue pair for a timeout, which is thousands of round trips long.",
    evidence=_EVIDENCE,
    next_step="look for discards at switches on the way and for link flaps; fabrictune rdma timers predict says what a "
    "timeout costs",
)
RETRIES_EXCEEDED = Rule(
    id="counters.retries-exceeded",
    severity=Severity.ERROR,
    title="Queue pairs out of retries",
    meaning="Queue pairs of the NIC gave up: a request was retransmitted as often as its retry count allows.",
    impact="The job that owned the queue pair has failed.",
    evidence=_EVIDENCE,
    next_step="read the job's log with fabrictune rdma timers explain",
)
SEQUENCE_ERRORS = Rule(
    id="counters.sequence-errors",
    severity=Severity.WARNING,
    title="Packets lost or out of order",
    meaning="The NIC saw gaps in the sequence of packets, or was told of them by a NAK.",
    impact="With go-back-N everything after the gap is sent again. Adaptive routing without reordering in the NIC has "
    "the same counters as loss.",
    evidence=_EVIDENCE,
    next_step="compare with discards at the switches; without any, look for packet spraying on the way",
)
RECEIVER_NOT_READY = Rule(
    id="counters.receiver-not-ready",
    severity=Severity.WARNING,
    title="Receiver without buffers",
    meaning="Messages arrived for which no receive was posted.",
    impact="The sender waits for the RNR timer before it tries again.",
    evidence=_EVIDENCE,
    next_step="post more receives, or find what keeps the receiving process from running",
)
COMPLETION_ERRORS = Rule(
    id="counters.completion-errors",
    severity=Severity.WARNING,
    title="Completions with an error",
    meaning="Requests completed with an error, other than those flushed when a queue pair closes.",
    impact="Usually a process that ended before its peer, or memory that was not registered.",
    evidence=_EVIDENCE,
    next_step="look for the first error in the logs of both processes",
)
DISCARDS = Rule(
    id="counters.discards",
    severity=Severity.WARNING,
    title="Packets discarded by the NIC or its port",
    meaning="The NIC received packets and had no room for them, or could not send what it had.",
    impact="On a lossless priority this is a misconfiguration: PFC should have stopped the sender before.",
    evidence=_EVIDENCE,
    next_step="check that PFC is on for the priority of the traffic at NIC and switch, and the NIC's buffers "
    "(mlnx_qos)",
)
PAUSES = Rule(
    id="counters.pauses",
    severity=Severity.INFO,
    title="Link paused by PFC or flow control",
    meaning="The network paused the NIC, or the NIC paused the network, for as long as the counters say.",
    impact="Pauses that the NIC sends spread to every flow through its switch port: the host receives too slowly. "
    "Those that it receives are congestion elsewhere.",
    evidence=f"{_EVIDENCE} The share of time needs --interval.",
    next_step="for pauses sent, look at the host (PCIe stalls, memory); for pauses received, at the switch's queues",
    thresholds=(
        Threshold(
            name="share",
            default=0.01,
            kind="fraction",
            meaning="share of the interval that is paused from which on the finding is a warning",
            source="Judgement: a pause of one percent costs one percent of a link and blocks its neighbours as long.",
            most=1.0,
        ),
    ),
    other_severities=((Severity.WARNING, "more than the threshold of the interval was paused"),),
)
PAUSE_STORM = Rule(
    id="counters.pause-storm",
    severity=Severity.ERROR,
    title="Pause storm",
    meaning="The NIC's watchdog saw it pause the network without a break.",
    impact="Everything behind its switch port has stood still.",
    evidence=_EVIDENCE,
    next_step="find what stalls the host: PCIe, a hung GPU, a process without receives",
)
CNP_NOT_SENT = Rule(
    id="counters.cnp-not-sent",
    severity=Severity.WARNING,
    title="ECN marks that no CNP answered",
    meaning="Packets arrived with a mark of congestion, and the NIC sent no CNP.",
    impact="The sender does not slow down; the queue fills until PFC or loss.",
    evidence=_EVIDENCE,
    next_step="switch the notification point on for the priority (ecn/roce_np/enable), and check the DSCP of CNPs",
)
CNP_IGNORED = Rule(
    id="counters.cnp-ignored",
    severity=Severity.WARNING,
    title="CNPs that changed nothing",
    meaning="CNPs arrived, and the NIC ignored them.",
    impact="This sender does not slow down where others do.",
    evidence=_EVIDENCE,
    next_step="switch the reaction point on for the priority (ecn/roce_rp/enable)",
)
LINK_DOWNS = Rule(
    id="counters.link-downs",
    severity=Severity.ERROR,
    title="Link that went down",
    meaning="The port lost its link, or recovered it, between the snapshots.",
    impact="Traffic stalls for a retransmission timeout at least; a job ends if the timers are shorter than the flap.",
    evidence=_EVIDENCE,
    next_step="check the cable and the module; fabrictune rdma timers choose lists timers that survive a flap",
)
LINK_ERRORS = Rule(
    id="counters.link-errors",
    severity=Severity.WARNING,
    title="Errors of the link",
    meaning="Packets or symbols arrived damaged.",
    impact="Damaged packets are lost packets, and on RoCE each costs a retransmission.",
    evidence=_EVIDENCE,
    next_step="clean or replace the cable or module, and compare with the counters of the switch's port",
)
RESET = Rule(
    id="counters.reset",
    severity=Severity.WARNING,
    title="Counters reset between the snapshots",
    meaning="Counters of the device fell: its driver was loaded again, or somebody cleared them.",
    impact="Nothing is known of what rose in between.",
    evidence="Table `nic_counters`: a rise of -1.",
    next_step="take both snapshots again, and find out why the device was reset",
)
SETTING_CHANGED = Rule(
    id="counters.setting-changed",
    severity=Severity.WARNING,
    title="Setting of a NIC that changed while it was monitored",
    meaning="MTU, speed, state, ECN or another setting of the device is no longer what it was.",
    impact="Two ends that disagree lose packets, or run slower than their link.",
    evidence="The setting's value before and after, read once a second.",
    next_step="find out who changed it; set it as on the job's other hosts",
)

NIC_COUNTERS = (
    TIMEOUT_RETRANSMISSIONS,
    RETRIES_EXCEEDED,
    SEQUENCE_ERRORS,
    RECEIVER_NOT_READY,
    COMPLETION_ERRORS,
    DISCARDS,
    PAUSES,
    PAUSE_STORM,
    CNP_NOT_SENT,
    CNP_IGNORED,
    LINK_DOWNS,
    LINK_ERRORS,
    RESET,
    SETTING_CHANGED,
)
