"""Rules of collectives and jobs: benchmarks, comparisons with a model, start-up, training."""

from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.findings import Severity

WRONG_RESULT = Rule(
    id="coll.wrong-result",
    severity=Severity.CRITICAL,
    title="Wrong result of a collective",
    meaning="Elements of a collective's result are wrong.",
    impact="The data path corrupts data: no training result and no timing of this system can be trusted.",
    evidence="Every element of every rank's buffers after the last iteration, or the #wrong column of nccl-tests.",
    next_step="use no timing of this run; try another version of the backend, and test the memory",
)
STRAGGLER = Rule(
    id="coll.straggler",
    severity=Severity.WARNING,
    title="Straggler",
    meaning="One rank enters collectives last far more often than the others, and the others wait for it.",
    impact="Every rank waits for the slowest: its delay is added to every step of a job.",
    evidence="Table `ranks`: begin of each iteration on every rank, on one clock, beyond the error of that clock. "
    "Only operations in which no rank can end before all have begun are counted.",
    next_step="check what else its processor, GPU or NIC does; then run without it",
    thresholds=(
        Threshold(
            name="late",
            default=0.1,
            kind="fraction",
            meaning="mean lateness of the rank over the time of the collective, in the median case, above which there "
            "is a finding",
            source="Judgement: less is within the variation of repeated benchmarks.",
        ),
        Threshold(
            name="excess",
            default=0.5,
            kind="fraction",
            meaning="how far the rank's share of last places must lie from an equal share (0 %) towards all (100 %)",
            source="Judgement: half way; with 2 ranks that is 75 % of the iterations, with 16 it is 53 %.",
            most=1.0,
        ),
    ),
)
MISSING_RANKS = Rule(
    id="coll.missing-ranks",
    severity=Severity.WARNING,
    title="Ranks missing in a benchmark's list",
    meaning="The head of a run of nccl-tests lists fewer ranks than took part.",
    impact="Bus bandwidths depend on the number of ranks, and the hosts of the missing ones are not known.",
    evidence="Gaps in the numbers of the listed ranks, and the ratio of busbw to algbw, which follows from their "
    "number.",
    next_step="import the whole output, or say the number with --num-ranks",
)
BANDWIDTH_CONTRADICTION = Rule(
    id="coll.bandwidth-contradiction",
    severity=Severity.WARNING,
    title="Bandwidth that contradicts its own row",
    meaning="The busbw column of nccl-tests is not what size, time and number of ranks of its row give.",
    impact="One of size, time, busbw and number of ranks is wrong, so that no comparison with a model holds.",
    evidence="Each row's size and time, times the bus factor of the operation and the number of ranks.",
    next_step="check the number of ranks and the operation (--num-ranks, --operation), and whether the file was edited",
)
AVERAGE_CONTRADICTION = Rule(
    id="coll.average-contradiction",
    severity=Severity.WARNING,
    title="Average that contradicts its rows",
    meaning="The average bus bandwidth that nccl-tests printed is not the mean of the rows in the file.",
    impact="Rows are missing or changed, or lines of two runs are mixed.",
    evidence="The line `Avg bus bandwidth`, and the mean busbw of all rows and places, empty sizes included.",
    next_step="import the whole output of one run",
)
NO_LINE = Rule(
    id="coll.no-line",
    severity=Severity.WARNING,
    title="Times that no line fits",
    meaning="The line through the times of a collective has a negative cost of a call or of a byte, beyond what its "
    "errors allow.",
    impact="Neither a cost of a call nor an asymptotic bandwidth can be read off these times.",
    evidence="Table `fits`: least squares of relative errors, with the 95 % interval of both parameters.",
    next_step="measure more sizes, or fit the sizes of one protocol alone",
)
FASTER_THAN_BOUND = Rule(
    id="coll.faster-than-bound",
    severity=Severity.WARNING,
    title="Measurement faster than the scenario allows",
    meaning="A collective took less time than the links of the scenario need to carry its bytes.",
    impact="The scenario is not the system that was measured, so that no attribution of its time holds.",
    evidence="Table `attribution`: measured time, and the lower bound of the scenario's links.",
    next_step="the scenario differs from what was measured: compare NICs per host, their rate, NVLink and channels",
    thresholds=(
        Threshold(
            name="least_of_bound",
            default=0.97,
            kind="fraction",
            meaning="measured time over the bound below which there is a finding",
            source="Judgement: leaves 3 % for the rounding of times and sizes.",
        ),
    ),
)
GAP = Rule(
    id="coll.gap",
    severity=Severity.INFO,
    title="Avoidable part of a collective's time",
    meaning="Part of the time of the largest message is not explained by the rate of the NICs.",
    impact="This part can be avoided; the finding names its largest cause and how to test it.",
    evidence="Table `attribution`: the measured time, shared out by a model of the scenario in a fixed order.",
    next_step="test the named cause",
    thresholds=(
        Threshold(
            name="least_share",
            default=0.1,
            kind="fraction",
            meaning="share of the measured time from which a cause is a finding",
            source="Judgement: less is within the error of the model.",
            most=1.0,
        ),
    ),
)
RATE_DECIDES = Rule(
    id="coll.rate-decides",
    severity=Severity.WARNING,
    title="Verdict that an assumed NIC rate decides",
    meaning="The rate of the NICs is not known, and another cause has most of the time at another possible rate.",
    impact="Neither the network nor the hosts can be named as the cause until the rate is known.",
    evidence="Table `verdict_rates`: the cause at each usual rate that allows the measured time, from one model.",
    next_step="say the rate with --nic-rate: `ibstat`, `ethtool DEVICE` or the speeds of NCCL_TOPO_DUMP_FILE have it",
)
REQUESTS = Rule(
    id="startup.requests",
    severity=Severity.ERROR,
    title="Unexpected number of start-up requests",
    meaning="The store received another number of requests than the start-up pattern needs by its closed form.",
    impact="Extrapolations to more ranks rest on the closed form and do not hold.",
    evidence="Table `storms`: requests counted by the store.",
    next_step="report it: the protocol and its closed form disagree",
)
MEMORY_EXCEEDED = Rule(
    id="train.memory-exceeded",
    severity=Severity.ERROR,
    title="More memory than a GPU has",
    meaning="A pipeline stage of the planned job needs more memory than the GPU of the plan has.",
    impact="The job ends with an out-of-memory error in its first step.",
    evidence="Table `memory`: predicted from tensors without values; caches and fragmentation come on top.",
    next_step="raise degrees.layout.tp, or lower degrees.batch_size or degrees.virtual",
)
STEPS_SKIPPED = Rule(
    id="train.steps-skipped",
    severity=Severity.WARNING,
    title="Skipped optimizer steps",
    meaning="Gradients of some steps were infinite or not a number, and the optimizer skipped these steps.",
    impact="Skipped steps do not train; many of them mean that the training diverges.",
    evidence="Table `training`, column is_skipped.",
    next_step="lower the learning rate, or use bfloat16 where float16 overflows",
    thresholds=(
        Threshold(
            name="skipped",
            default=0.0,
            kind="fraction",
            meaning="share of skipped steps above which there is a finding",
            source="Definition: with a stable loss scale no step is skipped.",
            most=1.0,
        ),
    ),
)
BUSY_MACHINE = Rule(
    id="validate.busy-machine",
    severity=Severity.WARNING,
    title="Measurements on a busy machine",
    meaning="Repetitions of one probe differ widely, or other processes have the processors.",
    impact="The model is calibrated on these probes and inherits their variation.",
    evidence="Table `calibration`: quartiles of the repetitions of each size; `processors` in run.json.",
    next_step="run again on an idle machine; until then read the ratios with their intervals",
    thresholds=(
        Threshold(
            name="quartiles",
            default=2.0,
            kind="factor",
            meaning="upper over lower quartile of one size above which there is a finding",
            source="Judgement: on an idle machine repetitions differ by some 10 %.",
            least=1.0,
        ),
        Threshold(
            name="others",
            default=0.1,
            kind="fraction",
            meaning="share of the processors' time that others have, above which there is a finding",
            source="Judgement: two ranks on two cores lose about as much of their time.",
            most=1.0,
        ),
    ),
)
PREDICTION_OFF = Rule(
    id="validate.prediction-off",
    severity=Severity.WARNING,
    title="Prediction outside its band",
    meaning="The simulated time of a step is far from the measured one.",
    impact="Predictions for jobs like this one are wrong by as much.",
    evidence="Table `comparison`: medians of simulated and measured time, and the parts of the simulated.",
    next_step="read the parts beside the measured time: what is left over is not in the model",
    thresholds=(
        Threshold(
            name="lowest",
            default=0.85,
            kind="factor",
            meaning="simulated over measured time, with its interval, below which there is a finding",
            source="Judgement: docs/decisions/0093; the interval carries the noise of a shared machine.",
        ),
        Threshold(
            name="highest",
            default=1.15,
            kind="factor",
            meaning="simulated over measured time, with its interval, above which there is a finding",
            source="Judgement: docs/decisions/0093; the interval carries the noise of a shared machine.",
        ),
    ),
)

BENCHMARKS = (
    WRONG_RESULT,
    STRAGGLER,
    MISSING_RANKS,
    BANDWIDTH_CONTRADICTION,
    AVERAGE_CONTRADICTION,
    NO_LINE,
    FASTER_THAN_BOUND,
    GAP,
    RATE_DECIDES,
)
JOBS = (REQUESTS, MEMORY_EXCEEDED, STEPS_SKIPPED, BUSY_MACHINE, PREDICTION_OFF)
