"""Hangs of a real job: processes of `train run`, of which one after another is stopped and goes on again."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fabrictune.foundation.span_writer import spans_beside
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.job import join_evidence
from fabrictune.studies.own_jobs import OwnJob, find_own_job, read_own_job
from fabrictune.trainer_probe.operation.pages import read_page
from fabrictune.trainer_probe.operation.run_pages import remove_run_pages, run_pages

SETTINGS = ("num_steps=100000", "schedule.num_steps=100000")
START_S = 300.0


@dataclass(frozen=True, kw_only=True)
class LiveTrial:
    """A rank that was stopped, the ranks that were named, and the time from the stop to the answer."""

    stopped: int
    named: tuple[int, ...]
    elapsed_s: float


def try_live(folder: Path, num_trials: int, *, seed: int = 0) -> list[LiveTrial]:
    """Stop ranks of a job of eight at random moments, and diagnose it each time; rank -1 stands for no stop."""
    random, record = Random(seed), folder / "run"
    words = [sys.executable, "-m", "fabrictune", "train", "run", "tiny", "--out", str(record), "--quiet"]
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    with subprocess.Popen([*words, *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        job = _await_steps(record, 2)
        try:
            return [_try(job, rank) for rank in [-1, *(random.randrange(8) for _ in range(num_trials))]]
        finally:
            pids = [read_page(path).pid for path in job.pages.values()]
            process.kill()
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            remove_run_pages(run_pages(spans_beside(record)))


def _try(job: OwnJob, rank: int) -> LiveTrial:
    pid = read_page(job.pages[rank]).pid if rank >= 0 else -1
    before = min(read_page(path).step for path in job.pages.values())
    began_s = time.perf_counter()
    if rank >= 0:
        os.kill(pid, signal.SIGSTOP)
    try:
        evidence = join_evidence([read_own_job(job)])
        found = diagnose(evidence)
        elapsed_s = time.perf_counter() - began_s
    finally:
        if rank >= 0:
            os.kill(pid, signal.SIGCONT)
    named = () if found is None else tuple(evidence.processes[one].rank for one in found.processes)
    while min(read_page(path).step for path in job.pages.values()) < before + 2:
        time.sleep(0.05)
    return LiveTrial(stopped=rank, named=named, elapsed_s=elapsed_s)


def _await_steps(record: Path, step: int) -> OwnJob:
    limit_s = time.monotonic() + START_S
    while time.monotonic() < limit_s:
        job = find_own_job(record)
        steps = [] if job is None else [read_page(path).step for path in job.pages.values()]
        if job is not None and len(steps) == job.layout.world_size and min(steps) >= step:
            return job
        time.sleep(0.1)
    raise TimeoutError("the job has not come to its first steps")


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
