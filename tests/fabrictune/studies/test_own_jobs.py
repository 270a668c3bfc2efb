"""Jobs of our own that stand still: eight real processes of `train run`, of which one is stopped, and then killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.span_writer import spans_beside
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.diagnosis import Cause
from fabrictune.observability.hangs.job import join_evidence
from fabrictune.studies.own_jobs import find_own_job, read_own_job
from fabrictune.trainer_probe.operation.pages import read_page
from fabrictune.trainer_probe.operation.run_pages import create_run_page, remove_run_pages, run_pages
from tests.patience import patience

SETTINGS = ("num_steps=100000", "schedule.num_steps=100000")
LOOK_S = 0.5


def steps(record: Path) -> list[int]:
    """Return the step of each rank whose page is there."""
    job = find_own_job(record)
    return [] if job is None else [read_page(path).step for path in job.pages.values()]


@pytest.mark.slow
def test_a_stopped_and_then_a_killed_rank_of_eight_are_named(tmp_path: Path) -> None:
    """Rank 5 is stopped: the others wait for it. Killed, its run ends; the pages that it leaves still name it."""
    pytest.importorskip("torch")
    record = tmp_path / "run"
    words = [sys.executable, "-m", "fabrictune", "train", "run", "tiny", "--out", str(record), "--quiet"]
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    with subprocess.Popen([*words, *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            limit_s = time.monotonic() + patience(120)
            while len(found := steps(record)) < 8 or min(found) < 2:
                assert time.monotonic() < limit_s, found
                assert process.poll() is None
                os.sched_yield()
            job = find_own_job(record)
            assert job is not None
            pid = read_page(job.pages[5]).pid
            os.kill(pid, signal.SIGSTOP)
            evidence = join_evidence([read_own_job(job, look_s=LOOK_S)])
            diagnosis = diagnose(evidence)
            assert diagnosis is not None
            assert (diagnosis.cause, [evidence.processes[one].rank for one in diagnosis.processes]) == (
                Cause.STOPPED,
                [5],
            )
            process.kill()
            os.kill(pid, signal.SIGKILL)
        finally:
            process.kill()
            left = find_own_job(record)
            for path in left.pages.values() if left is not None else ():
                _end(read_page(path).pid)
    remove_run_pages(run_pages(spans_beside(record)))


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_pages_of_a_run_that_is_gone_say_who_kept_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ranks 0 and 1 of one process: 0 waits for the second request of their group, which 1 has not issued."""
    folder = run_pages(spans_beside(tmp_path / "run"))
    layout = ParallelLayout(tp=2)
    for rank in range(2):
        page = create_run_page(folder, rank, layout)
        assert page is not None
        page.section("step")
        page.step(7)
        for number in range(2 - rank):
            page.issue(0, "tp.sum", 1024)
            page.wait(0, number, "tp.sum")
            if number == 0:
                page.complete(0, 0)
    try:
        code = run(["diagnose", str(tmp_path / "run"), "--out", str(tmp_path / "out")])
        out = capsys.readouterr().out
    finally:
        remove_run_pages(folder)
    assert code == 1
    assert "error: rank 1" in out
    assert "has not issued a request that the others wait for (likely); number 1 of tp (group 0): all_reduce" in out
    assert not folder.exists()


def test_a_rank_that_waits_for_its_loader_keeps_the_others(tmp_path: Path) -> None:
    """Rank 0 waits for a request that rank 1 has not issued, since its loader gives it no batch."""
    folder = run_pages(spans_beside(tmp_path / "run"))
    for rank in range(2):
        page = create_run_page(folder, rank, ParallelLayout(tp=2))
        assert page is not None
        page.section("step")
        page.step(7)
        if rank:
            page.wait_for_service("loader")
        else:
            page.issue(0, "tp.sum", 1024)
            page.wait(0, 0, "tp.sum")
    try:
        job = find_own_job(tmp_path / "run")
        assert job is not None
        evidence = join_evidence([read_own_job(job, look_s=0)])
        found = diagnose(evidence)
    finally:
        remove_run_pages(folder)
    assert found is not None
    assert (found.cause, [evidence.processes[one].rank for one in found.processes]) == (Cause.LOADER, [1])
    assert any("waits for its loader in step 7" in text for text in found.evidence)
