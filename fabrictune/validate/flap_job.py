"""Flaps of a real job's link: how long the job stalls, compared with when TCP sends again.

Two ranks all-reduce over gloo between two hosts that are network namespaces of this machine. For each flap the port of
the switch to one of them is taken down; the duration of the iteration on its way is the length of the stall. What RDMA
timers would make of the same flap is added as a prediction.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.checks import run_checks
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.finding_rules.rdma import FLAP_WRONG_RESULT, UNPREDICTED_STALL
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import NS_PER_S, PS_PER_NS, format_duration
from fabrictune.rdma_bench.flaps.network import FlappingNetwork, flapping_network
from fabrictune.rdma_bench.flaps.tcp import tcp_resumes_ns
from fabrictune.rdma_bench.timers.prediction import Prediction
from fabrictune.validate.flap_ranks import LastingJob, lasting_job

STARTUP_S = 60.0
PATIENCE_S = 10.0  # beyond what is predicted
PAUSE_S = 0.5  # of running, before each flap
SHORTEST_NS, LONGEST_NS = 100_000_000, 60_000_000_000
NEVER_NS = -1.0  # in the record


@dataclass(frozen=True, kw_only=True)
class FlapResult:
    """Result of one flap."""

    flap_ns: int  # as requested
    down_ns: int  # as it was
    timeout_ns: float  # of TCP, just before
    stall_ns: int  # from the link's going down to the end of the iteration that was on its way

    @property
    def tcp_resumes_ns(self) -> float:
        """The first of TCP's retransmissions after the link has come back."""
        return tcp_resumes_ns(self.down_ns, self.timeout_ns)

    def agrees(self, rules: RuleSettings = CATALOG_SETTINGS) -> bool:
        """Whether the job resumed with that retransmission."""
        return (
            abs(self.stall_ns - self.tcp_resumes_ns)
            <= rules.threshold(UNPREDICTED_STALL, "deviation") * self.tcp_resumes_ns
        )


def run_flap_job(
    flaps_ns: Sequence[int], *, num_bytes: int = 2**20, progress: Progress | None = None
) -> tuple[list[FlapResult], dict[str, Any]]:
    """Return what each flap did, and what rank 0 said at the end: iterations, median_ns, num_wrong.

    Raises InputError for a flap out of range, UnavailableError without root, namespaces or torch, or if a rank fails.
    """
    wrong = [flap_ns for flap_ns in flaps_ns if not SHORTEST_NS <= flap_ns <= LONGEST_NS]
    if wrong or not flaps_ns:
        found = ", ".join(format_duration(flap_ns * PS_PER_NS) for flap_ns in wrong) or "none"
        raise InputError(Mistake(where="flap", found=found, allowed="100 ms to 60 s"))
    require_extra("torch", extra="train", where="rdma flap-job")
    with flapping_network() as network, lasting_job(network, num_bytes) as job:
        job.await_event("ready", STARTUP_S)
        results = []
        for flap_ns in flaps_ns:
            results.append(_flap(network, job, flap_ns))
            if progress:
                progress(len(results) / len(flaps_ns))
        job.stop()
        return results, job.await_event("end", PATIENCE_S)


def flap_record(
    results: Sequence[FlapResult],
    ended: Mapping[str, Any],
    predictions: Sequence[Prediction],
    *,
    started: float,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return the flaps as a record, each with what adapters would make of it."""
    flaps = [
        {
            "flap_ns": result.flap_ns,
            "down_ns": result.down_ns,
            "tcp_timeout_ns": result.timeout_ns,
            "tcp_resumes_ns": result.tcp_resumes_ns,
            "stall_ns": result.stall_ns,
        }
        for result in results
    ]
    rdma = [_rdma_row(prediction, result) for prediction in predictions for result in results]
    record = RunRecord(
        kind="rdma flap-job",
        run=describe_run(seed=0, started=started, job={name: ended[name] for name in ("iterations", "median_ns")}),
        tables={"flaps": to_columns("flaps", flaps), "rdma": to_columns("rdma", rdma)},
    )
    return record.with_checks(
        run_checks(
            (UNPREDICTED_STALL.id, FLAP_WRONG_RESULT.id),
            f"{len(results):,} flaps",
            _findings(results, int(ended["num_wrong"]), rules),
        )
    )


def _rdma_row(prediction: Prediction, result: FlapResult) -> dict[str, Any]:
    resumes_ns = prediction.resumes_ns(result.down_ns)
    return {
        "profile": prediction.profile.name,
        "flap_ns": result.flap_ns,
        "resumes_ns": resumes_ns if math.isfinite(resumes_ns) else NEVER_NS,
    }


def _flap(network: FlappingNetwork, job: LastingJob, flap_ns: int) -> FlapResult:
    time.sleep(PAUSE_S)
    job.forget_events()
    timeout_ns = network.retransmission_timeout_ns()
    down_ns = time.monotonic_ns()
    network.take_down()
    time.sleep(flap_ns / NS_PER_S)
    network.bring_up()
    up_ns = time.monotonic_ns()
    ended_ns = _stall_end_ns(job, up_ns, tcp_resumes_ns(up_ns - down_ns, timeout_ns) / NS_PER_S + PATIENCE_S)
    return FlapResult(flap_ns=flap_ns, down_ns=up_ns - down_ns, timeout_ns=timeout_ns, stall_ns=ended_ns - down_ns)


def _stall_end_ns(job: LastingJob, up_ns: int, timeout_s: float) -> int:
    """Return when the iteration ended that waited for the link; one before it may have been slow on its own."""
    while True:
        ended_ns = int(job.await_event("stall", timeout_s)["ended_ns"])
        if ended_ns >= up_ns:
            return ended_ns


def _findings(results: Sequence[FlapResult], num_wrong: int, rules: RuleSettings) -> Iterator[Finding]:
    for result in results:
        if not result.agrees(rules):
            yield UNPREDICTED_STALL.finding(
                entity=f"a flap of {format_duration(result.flap_ns * PS_PER_NS)}",
                expected=f"a stall of {format_duration(result.tcp_resumes_ns * PS_PER_NS)}",
                actual=f"stalled for {format_duration(result.stall_ns * PS_PER_NS)}",
                confidence=Confidence.MEASURED,
            )
    if num_wrong:
        yield FLAP_WRONG_RESULT.finding(
            entity="the job",
            expected="none in any all-reduce",
            actual=f"{num_wrong} wrong elements",
            confidence=Confidence.MEASURED,
        )
