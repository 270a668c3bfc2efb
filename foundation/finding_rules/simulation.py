"""Rules of simulated runs: transfers, losses, pauses, faults, expectations, sweeps."""

from fabrictune.foundation.finding_rules.schema import FAMILY, Rule, Threshold
from fabrictune.foundation.findings import Severity

_PAUSED = Threshold(
    name="paused",
    default=0.0,
    kind="fraction",
    meaning="share of the run for which the port paused longest may be paused without a finding",
    source="Judgement: PFC is the last resort below congestion control, so that every pause is worth knowing.",
    most=1.0,
)

PFC_DEADLOCK = Rule(
    id="netsim.pfc-deadlock",
    severity=Severity.ERROR,
    title="PFC deadlock",
    meaning="Paused ports wait for one another in a cycle that nothing ends.",
    impact="Everything behind the cycle stops for ever; in a real network only a watchdog or a reset ends it.",
    evidence="Predicted: the pauses and queues of the simulated ports at the end of the run.",
    next_step="remove paths that go up again after they went down, or let switches drop the blocking packets",
)
UNFINISHED_TRANSFERS = Rule(
    id="netsim.unfinished-transfers",
    severity=Severity.ERROR,
    title="Transfers that never completed",
    meaning="The run ended before all transfers were acknowledged.",
    impact="Completion times of such a run leave out the slowest transfers.",
    evidence="Table `transfers` (acknowledged_ps is -1), and the outcome of the run.",
    next_step="look at what delays these transfers, or raise time_limit",
)
LOSSLESS_DROPS = Rule(
    id="netsim.lossless-drops",
    severity=Severity.ERROR,
    title="Packet loss in a lossless class",
    meaning="A switch or NIC dropped packets of a class that pauses its senders instead.",
    impact="The headroom does not take what is on its way when a port is paused; real switches drop as well.",
    evidence="Table `queues` (input_dropped_packets), or `ports` where ports have no priorities.",
    next_step="raise the headroom (engine.pfc.headroom), or lower xoff",
)
DROPPED_PACKETS = Rule(
    id="netsim.dropped-packets",
    severity=Severity.WARNING,
    title="Packet loss",
    meaning="Switches dropped packets for lack of buffer, or by WRED (`ecn.not_capable: drop`); losses by faults are "
    "counted with the faults.",
    impact="RoCE recovers slowly from losses: go-back-N sends everything again after each.",
    evidence="Tables `ports` and `drops` of the simulated run.",
    next_step="check buffer, headroom and xoff of the ingress ports",
    thresholds=(
        Threshold(
            name="loss",
            default=0.0,
            kind="fraction",
            meaning="share of all packets sent that may be lost without a finding",
            source="Definition: a fabric with PFC is lossless; raise it for a lossy one with selective repeat.",
            most=1.0,
        ),
    ),
)
PAUSE_STORM = Rule(
    id="netsim.pause-storm",
    severity=Severity.ERROR,
    title="PFC pause storm",
    meaning="A queue stayed paused for longer than the PFC watchdog of its port allows.",
    impact="The watchdog drops the queue's packets, and everything behind the queue stops until then.",
    evidence="Table `queues` (pause_storms) of the simulated run; the limit is the watchdog's in `engine.pfc`.",
    next_step="look for the port behind this one that pauses first, and for a cycle of paused ports",
)
PAUSED_SWITCHES = Rule(
    id="netsim.paused-switches",
    severity=Severity.WARNING,
    title="Paused switch ports",
    meaning="PFC paused ports of switches: by the next switch, or by a NIC that is slow to receive.",
    impact="Congestion spreads to flows that do not use the congested port (Zhu et al., SIGCOMM 2015, section 2.2).",
    evidence="Table `ports` (pauses, paused_ps) of the simulated run.",
    next_step="find the port or NIC behind it that pauses first, and what congests it",
    thresholds=(_PAUSED,),
)
PAUSED_HOSTS = Rule(
    id="netsim.paused-hosts",
    severity=Severity.INFO,
    title="Paused host ports",
    meaning="PFC paused NICs of hosts, by the switches they send to.",
    impact="Congestion control did not act before PFC; all flows of the class wait, not only those that congest.",
    evidence="Table `ports` (pauses, paused_ps) of the simulated run.",
    next_step="check whether congestion control can act first: ECN thresholds below xoff, fewer concurrent senders",
    thresholds=(_PAUSED,),
)
SPURIOUS_RETRANSMISSIONS = Rule(
    id="netsim.spurious-retransmissions",
    severity=Severity.WARNING,
    title="Retransmissions without loss",
    meaning="Senders repeated packets of which none was lost, refused or overtaken.",
    impact="The retransmission timer is shorter than the round trip through full queues; repeats fill them further.",
    evidence="Table `transfers` (packets_retransmitted), in a run without losses, RNR NAKs and changes of paths.",
    next_step="raise the retransmission timeout above the longest round trip (engine.transport)",
)
REORDERED_PACKETS = Rule(
    id="netsim.reordered-packets",
    severity=Severity.WARNING,
    title="Retransmissions caused by reordering",
    meaning="The path choice reorders packets, and the transport takes some of them for lost.",
    impact="Go-back-N sends all packets after the first late one again; goodput falls although nothing was lost.",
    evidence="Table `transfers` (packets_retransmitted), and the packets that arrived out of order.",
    next_step="use selective repeat, or a path choice that keeps packets in order: hash, weighted, or flowlets with "
    "a longer gap",
)
RECEIVER_NOT_READY = Rule(
    id="netsim.receiver-not-ready",
    severity=Severity.WARNING,
    title="Receiver not ready (RNR NAK)",
    meaning="Messages arrived before the receiver had posted a receive for them.",
    impact="Each RNR NAK stops the sender for the time in it, far longer than a round trip.",
    evidence="RNR NAKs that the simulated receivers sent.",
    next_step="post more receives ahead, or post them earlier",
    thresholds=(
        Threshold(
            name="naks",
            default=0,
            kind="count",
            meaning="RNR NAKs in a run that are no finding",
            source="Definition: with enough receives posted there are none.",
        ),
    ),
)
ABORTED_QUEUE_PAIRS = Rule(
    id="netsim.aborted-queue-pairs",
    severity=Severity.ERROR,
    title="Failed queue pairs",
    meaning="Queue pairs used all their retries and failed, as ibv_poll_cq reports with IBV_WC_RETRY_EXC_ERR.",
    impact="A job whose queue pair fails ends, unless its library connects again.",
    evidence="Table `aborts` of the simulated run; faults on the path within the retry budget are named as causes.",
    next_step="raise the retry budget (engine.transport), or provide new paths within it (convergence_delay)",
)
FAULT_DROPS = Rule(
    id="netsim.fault-drops",
    severity=Severity.WARNING,
    title="Packets lost to faults",
    meaning="Faults of the scenario cost packets.",
    impact="The transport repeats them, which delays their transfers by timers and retransmissions.",
    evidence="Table `drops` of the simulated run, by port and cause.",
    next_step="see table faults for the goodput around each; shorten the fault or the convergence delay",
)
FAULT_NEVER_BEGAN = Rule(
    id="netsim.fault-never-began",
    severity=Severity.WARNING,
    title="Fault after the end of the run",
    meaning="A fault of the scenario begins later than the run ended.",
    impact="The run says nothing about this fault.",
    evidence="The scenario's faults, and the simulated time at the end.",
    next_step="let the fault begin earlier, or send more",
)
SAMPLES_TRUNCATED = Rule(
    id="netsim.samples-truncated",
    severity=Severity.WARNING,
    title="Truncated samples",
    meaning="The probe of the run reached the most samples a record holds before the run ended.",
    impact="Plots and percentiles of queues cover the beginning of the run alone.",
    evidence="Tables `samples` and `flow_samples` of the simulated run.",
    next_step="raise probe.interval, or sample fewer ports and flows",
)
CAPTURE_TRUNCATED = Rule(
    id="netsim.capture-truncated",
    severity=Severity.INFO,
    title="Truncated capture",
    meaning="The capture file holds only the first packets of those that match.",
    impact="Later packets are missing; a statistic over the file covers the beginning of the run alone.",
    evidence="Packets matched and packets written.",
    next_step="raise capture.max_packets, or capture fewer flows",
)
EXPECTATION = Rule(
    id=f"expect.{FAMILY}",
    severity=Severity.ERROR,
    title="Broken expectation",
    meaning="A metric breaks a bound that the scenario's `expect:` list sets; the id ends in the metric's name.",
    impact="The scenario states this bound as its requirement. An unknown metric breaks its bound, too.",
    evidence="The metric of the run, as docs/reference/metrics.md defines it.",
    next_step="look at the slowest transfers and the busiest ports in the report, or correct the bound",
)
POINT_FAILED = Rule(
    id="sweep.point-failed",
    severity=Severity.WARNING,
    title="Sweep point without a result",
    meaning="The settings of a point were refused, or its run failed.",
    impact="The Pareto front and the sensitivities leave the point out.",
    evidence="The error of the point's own run.",
    next_step="leave out these values, or run the scenario of one of its records alone",
)
POINT_UNFINISHED = Rule(
    id="sweep.point-unfinished",
    severity=Severity.WARNING,
    title="Sweep point without every objective",
    meaning="A run of the point has no value for an objective, usually because transfers never completed.",
    impact="The Pareto front and the sensitivities leave the point out, although it may be the worst of all.",
    evidence="The metrics of the point's own records.",
    next_step="leave out these values, or run the scenario of one of its records alone",
)

STEP_ABOVE_BOUND = Rule(
    id="replay.step-above-bound",
    severity=Severity.WARNING,
    title="Replayed steps slowed by contention",
    meaning="A step of a replayed trace takes longer than if its transfers shared no link.",
    impact="The training waits for the network: collisions, incast or congestion control, and not its own computation.",
    evidence="Tables `replayed_steps` (duration_ps, lower_bound_ps) and `critical_path` of the simulated run.",
    next_step="look at the links of the critical path (`ecmp explain`), and try another placement or more queue pairs",
    thresholds=(
        Threshold(
            name="bound",
            default=1.05,
            kind="factor",
            meaning="mean step time over its lower bound up to which there is no finding",
            source="Judgement: five percent of a cluster's time pays for a second look at its paths.",
            least=1.0,
        ),
    ),
)

RUNS = (
    PFC_DEADLOCK,
    UNFINISHED_TRANSFERS,
    LOSSLESS_DROPS,
    DROPPED_PACKETS,
    PAUSE_STORM,
    PAUSED_SWITCHES,
    PAUSED_HOSTS,
    SPURIOUS_RETRANSMISSIONS,
    REORDERED_PACKETS,
    RECEIVER_NOT_READY,
    ABORTED_QUEUE_PAIRS,
    FAULT_DROPS,
    FAULT_NEVER_BEGAN,
    SAMPLES_TRUNCATED,
    CAPTURE_TRUNCATED,
    EXPECTATION,
    STEP_ABOVE_BOUND,
)
ONE_SEED = Rule(
    id="sweep.one-seed",
    severity=Severity.WARNING,
    title="Pareto front of one seed",
    meaning="Every point of the sweep was run with one seed, so that nothing tells how far chance moves a point.",
    impact="Another seed may put other points on the front; neither it nor the sensitivities are founded.",
    evidence="The sweep's number of seeds.",
    next_step="repeat it with `seeds: 5` or more (--seeds); the intervals then say which points differ",
)

SWEEPS = (POINT_FAILED, POINT_UNFINISHED, ONE_SEED)
