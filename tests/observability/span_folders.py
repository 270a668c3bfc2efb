"""Spans of simulated jobs in files, as their ranks would have written them."""

from pathlib import Path

from benchmarks.studies.planted_stragglers.files import write_files
from benchmarks.studies.planted_stragglers.jobs import Disturbance, JobSize, simulate
from fabrictune.foundation.span_writer import FOLDER
from fabrictune.foundation.spans import Spans

SMALL = JobSize(dp=8, pp=2, num_batches=4, num_steps=6)


def slow_job(*, seed: int = 1) -> Spans:
    """Return a job of 16 ranks whose rank 11 is 10 % slow."""
    disturbance = Disturbance.none(SMALL)
    disturbance.work_SDP[:, 3, 1] = 1.1
    return simulate(SMALL, disturbance, seed)


def write_spans(spans: Spans, run: Path) -> None:
    """Write the spans of each rank to a run's folder."""
    write_files(spans, run / FOLDER)
