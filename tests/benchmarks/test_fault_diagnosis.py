"""Diagnoses of a modelled job: faults are named, and healthy jobs go on."""

import pytest

from benchmarks.studies.fault_diagnosis.faults import FAULTS, TROUBLES
from benchmarks.studies.fault_diagnosis.trials import try_fault, try_trouble


@pytest.mark.parametrize("name", sorted(set(FAULTS) - {"rank in a loop"}))  # which takes a hundred steps to be one
def test_fault_is_named(name: str) -> None:
    """Cause and entity, at two moments each."""
    for seed in (0, 3):  # with the shortest steps
        trial = try_fault(name, seed)
        assert trial.is_right, trial


@pytest.mark.parametrize("name", sorted(TROUBLES))
def test_healthy_job_is_not_ended(name: str) -> None:
    """A rank that is slow, stopped in turns or paused is at work, and a late heartbeat is none that is missing."""
    trial = try_trouble(name, 0)
    assert trial.is_right, trial


def test_stopped_rank_is_named_within_three_steps() -> None:
    """Two steps by the rule, and what the reports take."""
    assert max(try_fault("rank stopped", seed).after_steps for seed in (0, 1, 2)) <= 3.0
