"""A short sample of the trials of hangs: each fault once, and a job without one."""

from pathlib import Path

import pytest

from benchmarks.studies.hangs.faults import FAULTS
from benchmarks.studies.hangs.trials import try_clean, try_hang


@pytest.mark.parametrize("seed", range(len(FAULTS)))
def test_a_planted_hang_is_named(seed: int, tmp_path: Path) -> None:
    trial = try_hang(seed, 64, tmp_path)
    assert trial.is_located, trial


def test_a_job_without_a_fault_is_left_alone(tmp_path: Path) -> None:
    assert try_clean(0, 64, tmp_path).diagnosis is None
