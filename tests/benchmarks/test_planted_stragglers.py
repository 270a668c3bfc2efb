"""Planted stragglers: each fault is named and placed in one simulated job of 64 machines, and none in a clean one."""

import pytest

from benchmarks.studies.planted_stragglers.faults import FAULTS
from benchmarks.studies.planted_stragglers.trials import try_fault


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_placed(name: str) -> None:
    """Its cause and rank, and nothing else."""
    trial = try_fault(name, 64, 0)
    assert (trial.is_right, trial.is_located, trial.num_named) == (True, True, 1)


def test_clean_job_raises_nothing() -> None:
    assert try_fault("", 64, 0).num_named == 0
