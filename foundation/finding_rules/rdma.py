"""Rules of RDMA: retransmission timers, logs of NCCL, measured adapters, link flaps."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

_LOG = "Lines of the NCCL log, quoted with file and line."
_TIMERS = "The timers in the log or NCCL's defaults, and the profile of the adapter."

RETRIES_EXCEEDED = Rule(
    id="nccl.retries-exceeded",
    severity=Severity.ERROR,
    title="Queue pair out of retries",
    meaning="A completion failed with IBV_WC_RETRY_EXC_ERR (12): no answer came for as long as the timers allow.",
    impact="The job ends. A dead peer, a link that is down and a switch without a route all look like this.",
    evidence=_LOG,
    next_step="check whether the peer's process lives and whether link_downed or symbol errors rose on either port",
)
COMPLETION_ERROR = Rule(
    id="nccl.completion-error",
    severity=Severity.ERROR,
    title="Completion with an error",
    meaning="A completion failed with another status than a timeout.",
    impact="The job ends. The cause is usually the peer's process or memory, not the network.",
    evidence=_LOG,
    next_step="check the peer's log for an earlier error",
)
TIMER_SETTING = Rule(
    id="nccl.timer-setting",
    severity=Severity.ERROR,
    title="Timer setting that cannot work",
    meaning="NCCL_IB_TIMEOUT or NCCL_IB_RETRY_CNT is outside its field's range, turns recovery off, or differs "
    "between hosts.",
    impact="Queue pairs wait for ever, or fail at the first lost packet, or fail on one host before the others.",
    evidence="Environment that the hosts logged, quoted with file and line.",
    next_step="set the same valid value on every host",
    other_severities=((Severity.WARNING, "hosts have different values, each of which is valid"),),
)
FLAP_TOO_LONG = Rule(
    id="nccl.flap-too-long",
    severity=Severity.ERROR,
    title="Flap longer than the timers survive",
    meaning="With these settings a queue pair fails before a flap of the required length (--survive) is over.",
    impact="Every flap of this length ends the job.",
    evidence=_TIMERS,
    next_step="raise NCCL_IB_TIMEOUT or NCCL_IB_RETRY_CNT; fabrictune rdma timers choose lists the pairs",
)
WATCHDOG_TOO_SHORT = Rule(
    id="nccl.watchdog-too-short",
    severity=Severity.WARNING,
    title="Watchdog shorter than the timers",
    meaning="The watchdog of the framework (--watchdog) ends the job before the queue pair fails.",
    impact="The log then lacks the error that names the link.",
    evidence=_TIMERS,
    next_step="raise the watchdog's timeout above this time; otherwise the error that names the link is never logged",
)
NO_SUCH_TIMER = Rule(
    id="nccl.no-such-timer",
    severity=Severity.INFO,
    title="Network or adapter without known timers",
    meaning="The log names a network that NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT do not control, or adapters whose "
    "timers nobody has measured or documented.",
    impact="Neither the survival of a flap nor the time until a failure can be predicted.",
    evidence="The networks, providers and devices that the log names, quoted with file and line.",
    next_step="give a profile of these adapters with --profile, or consult the documentation of that network",
    other_severities=((Severity.ERROR, "a requirement was set (--flap, --watchdog)"),),
)
PARTIAL = Rule(
    id="rdma.partial",
    severity=Severity.WARNING,
    title="Incomplete measurement",
    meaning="The measurement stopped before all of its cases were measured.",
    impact="Conclusions cover the measured cases alone.",
    evidence="Cases planned and cases measured, and the reason for the stop.",
    next_step="measure again; the cases measured so far can be used",
)
MESSAGE_RATE_CONTRADICTION = Rule(
    id="rdma.message-rate-contradiction",
    severity=Severity.WARNING,
    title="Bandwidth that its rate of messages contradicts",
    meaning="A row of perftest has a bandwidth that differs by more than 1 % from its rate of messages times the size.",
    impact="The row was edited, two lines were mixed, or the unit of the bandwidth is not that of its heading.",
    evidence="Table `perftest`: bandwidth, rate of messages and size of the row.",
    next_step="look at the row in its file; run the test with --report_gbits",
)
SLOW_HOST = Rule(
    id="rdma.slow-host",
    severity=Severity.WARNING,
    title="Host slower than the others",
    meaning="A host sends or receives more slowly than the other hosts do, with whichever peer.",
    impact="Every collective that this host takes part in runs at its pace.",
    evidence="Table `rdma_transfers`: the median over a host's peers, by direction, against the median and the median "
    "absolute deviation (MAD) of all hosts.",
    next_step="compare its NIC, PCIe width, cable, PFC and NUMA settings with those of another host, then measure it "
    "again",
    thresholds=(
        Threshold(
            name="deviation",
            default=0.05,
            kind="fraction",
            meaning="relative deviation from the median of the hosts above which there is a finding",
            source="Judgement: repeated perftest runs differ by one to two percent.",
        ),
        Threshold(
            name="spread",
            default=3.5,
            kind="factor",
            meaning="deviation from the median of the hosts, in standard deviations estimated by 1.4826 MAD, above "
            "which there is a finding",
            source="Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993).",
        ),
        Threshold(
            name="least_hosts",
            default=5,
            kind="count",
            meaning="number of hosts from which on the rule is applied",
            source="Judgement: below it one slow host moves the medians of the others.",
            least=4,
        ),
    ),
)
TIMERS_OFF = Rule(
    id="rdma.timers-off",
    severity=Severity.INFO,
    title="Adapter that does not follow its profile",
    meaning="The adapter fails a queue pair earlier or later than the timer profile predicts.",
    impact="Predictions with this profile are wrong for this adapter by as much.",
    evidence="Table `trials`: trials in which the path stayed dead.",
    next_step="use the fitted profile (--profile FILE) in predictions and simulations of this adapter",
    thresholds=(
        Threshold(
            name="deviation",
            default=0.15,
            kind="fraction",
            meaning="relative deviation from the profile's time above which there is a finding",
            source="Judgement: above the variation of repeated trials, below one timer step (a factor of two).",
        ),
    ),
)
SIMULATION_DIFFERS = Rule(
    id="timers.simulation-differs",
    severity=Severity.WARNING,
    title="Simulation that does not follow the timer model",
    meaning="The simulated queue pairs fail or resume at another time than the timer model predicts.",
    impact="The scenario has another path around the fault, or its traffic does not cross the link.",
    evidence="Table `timers`: the times of the model and of the packet engine.",
    next_step="check whether all traffic crosses the link, and whether paths converge around it",
    thresholds=(
        Threshold(
            name="deviation",
            default=0.05,
            kind="fraction",
            meaning="relative deviation from the model's time above which there is a finding",
            source="Judgement: model and engine agree to the digit where nothing but the timers acts.",
        ),
    ),
)
UNPREDICTED_STALL = Rule(
    id="flaps.unpredicted-stall",
    severity=Severity.WARNING,
    title="Stall of another length than predicted",
    meaning="A job stalled for another time than TCP's retransmissions predict for the flap.",
    impact="The prediction of stalls does not hold on this machine.",
    evidence="Table `flaps`: the stall of each flap, measured by the rank.",
    next_step="repeat it on an idle machine; check tcp_rto_min_us and tcp_retries2",
    thresholds=(
        Threshold(
            name="deviation",
            default=0.25,
            kind="fraction",
            meaning="relative deviation from the predicted stall above which there is a finding",
            source="Judgement: retransmissions lie a factor of two apart, so that a missed one deviates by more.",
        ),
    ),
)
FLAP_WRONG_RESULT = Rule(
    id="flaps.wrong-result",
    severity=Severity.CRITICAL,
    title="Wrong result after a flap",
    meaning="An all-reduce of the job gave wrong elements.",
    impact="A transport that resumes must not lose or repeat bytes.",
    evidence="Every element of each result, compared with its known value.",
    next_step="report it with the record",
)

TIMERS = (
    RETRIES_EXCEEDED,
    COMPLETION_ERROR,
    TIMER_SETTING,
    FLAP_TOO_LONG,
    WATCHDOG_TOO_SHORT,
    NO_SUCH_TIMER,
    PARTIAL,
    MESSAGE_RATE_CONTRADICTION,
    SLOW_HOST,
    TIMERS_OFF,
    SIMULATION_DIFFERS,
    UNPREDICTED_STALL,
    FLAP_WRONG_RESULT,
)
