"""The launcher: results by rank, and an end to every job that goes wrong."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch
from tests.patience import patience

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member


def return_who_it_is(member: "Member") -> Mapping[str, NDArray[Any]]:
    import torch.distributed as dist

    return {"rank": np.array([member.rank, dist.get_world_size(), os.getpid()])}


def fail_as_rank_1(member: "Member") -> Mapping[str, NDArray[Any]]:
    if member.rank == 1:
        raise ValueError("the seventh seal")
    return wait_for_ever()


def end_unless_rank_1(member: "Member") -> Mapping[str, NDArray[Any]]:
    return wait_for_ever() if member.rank == 1 else {}


def wait_for_ever() -> Mapping[str, NDArray[Any]]:
    Event().wait()
    return {}


def test_results_come_back_by_rank() -> None:
    """Three processes, each of its own, joined in one group."""
    pytest.importorskip("torch")
    found = [result["rank"].tolist() for result in launch(ParallelLayout(dp=3), return_who_it_is)]
    assert [row[:2] for row in found] == [[0, 3], [1, 3], [2, 3]]
    assert len({row[2] for row in found} | {os.getpid()}) == 4


def test_a_failing_rank_ends_the_job_with_its_traceback() -> None:
    """Rank 0 would wait for ever for a rank that is gone; it is ended, where it stood is said, and rank 1's words."""
    pytest.importorskip("torch")
    with pytest.raises(UnavailableError, match="the seventh seal") as error:
        launch(ParallelLayout(dp=2), fail_as_rank_1)
    failed, others = error.value.mistakes
    assert failed.where == "rank 1"
    assert "Traceback" in failed.found
    assert others.found.startswith("were ended\nrank 0: ")
    assert re.search(r"< test_processes\.py:\d+ wait_for_ever", others.found)


def test_a_job_that_does_not_end_names_who_is_missing() -> None:
    """Rank 1 never ends: the message says so, and where it waits, rather than hanging."""
    pytest.importorskip("torch")
    limit_s = patience(5)
    with pytest.raises(UnavailableError) as error:
        launch(ParallelLayout(dp=2), end_unless_rank_1, timeout_s=limit_s)
    (mistake,) = error.value.mistakes
    assert "rank 1" in mistake.where
    first, *places = mistake.found.splitlines()
    assert first == f"not finished after {limit_s:g} s"
    assert any(re.search(r"^rank .*1: .* wait_for_ever", place) for place in places)
    assert mistake.next_step == "raise the timeout, or look for ranks that wait for one another"


def test_without_torch_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch is an extra: whoever lacks it must read how to install it, and no traceback."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnavailableError) as error:
        launch(ParallelLayout(dp=2), lambda member: {})
    assert str(error.value) == ('trainer: torch is not installed\n  next: pip install "fabrictune[train]"')
    assert error.value.exit_code == 3


def say_what_is_blocked(member: "Member") -> dict[str, BoolArray]:
    return {"is_deaf": np.array(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))}


def test_ranks_do_not_hear_a_terminals_interrupt() -> None:
    """It is for the process that started them, which still does."""
    assert all(arrays["is_deaf"] for arrays in launch(ParallelLayout(dp=2), say_what_is_blocked))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


# Each rank writes its line in one call: `print` on an unbuffered stream writes the end of the line in a second one.
JOB_OF_RANKS_THAT_WAIT = """
import os
from threading import Event
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch

def wait_for_ever(member):
    os.write(1, f"{os.getpid()}\\n".encode())
    Event().wait()

if __name__ == "__main__":
    launch(ParallelLayout(dp=2), wait_for_ever)
"""


def test_ranks_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """SIGKILL leaves it no time to end them; the output is read to its end, which ranks that live hold open."""
    pytest.importorskip("torch")
    script = tmp_path / "job.py"
    script.write_text(JOB_OF_RANKS_THAT_WAIT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        ranks = [int(starter.stdout.readline()) for _ in range(2)]
        starter.kill()
        try:
            assert starter.communicate(timeout=patience(10))[0] == ""
        except subprocess.TimeoutExpired:
            for number in ranks:
                os.kill(number, signal.SIGKILL)
            raise
