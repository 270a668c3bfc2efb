"""A short sample of the campaign of planted faults, its figures, and how it goes on."""

from pathlib import Path

import pytest

from benchmarks.studies.planted_faults.report import figures
from benchmarks.studies.planted_faults.session import LINES, Session
from benchmarks.studies.planted_faults.simulated import try_simulated
from benchmarks.studies.planted_faults.trials import (
    CLEAN,
    REAL_KINDS,
    TESTBED_KINDS,
    Name,
    Result,
    Trial,
    Truth,
    make_trials,
)
from tests.real.namespaces import require_namespaces


@pytest.mark.parametrize("kind", ["lossy NIC", "lossy link", "hang"])
def test_a_planted_fault_is_located_by_its_command(kind: str, tmp_path: Path) -> None:
    """In the spans, in counts by path, and in dumps and logs of 64 ranks; nothing else is named."""
    result = try_simulated(Trial(part="simulated", size=64, kind=kind, number=0), 0, tmp_path)
    assert (result.is_located, len(result.names)) == (True, 1), result


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    trials = make_trials("simulated", sizes=[64], kinds=["lossy link"], trials=2, clean=0)
    first = next(Session(tmp_path, 0).go_on(trials, float("inf")))
    with (tmp_path / LINES).open("a") as file:
        file.write('{"seed": 0, "resu')  # it was killed while it wrote
        file.write("\n")
    assert [result.trial for result in Session(tmp_path, 0).go_on(trials, float("inf"))] == [trials[1]]
    assert Session(tmp_path, 0).results()[trials[0]] == first
    assert list(Session(tmp_path, 1).results()) == []


def test_figures_are_those_of_the_names() -> None:
    """Of three faults one is located, one is among two ranks, one is missed; one name of four is of nothing planted."""
    truth = Truth(cause="slow link", places=(("3",),))

    def result(*names: Name, kind: str = "slow link", truth: Truth | None = truth) -> Result:
        trial = Trial(part="simulated", size=64, kind=kind, number=0)
        return Result(trial=trial, truth=truth, names=names, answer_s=1.0)

    right, wide = Name(cause="slow link", where=("3",)), Name(cause="slow link", where=("2", "3"))
    other = Name(cause="slow work", where=("3",))
    found = figures([result(right, other), result(wide), result(), result(other, kind=CLEAN, truth=None)])
    assert (found.recall.number, found.recall.total) == (2, 3)
    assert (found.located.number, found.located.total) == (1, 3)
    assert (found.precision.number, found.precision.total) == (1, 4)
    assert (found.alarms.number, found.alarms.total) == (1, 1)


@pytest.mark.sweep
def test_faults_of_a_real_job_are_located(tmp_path: Path) -> None:
    """Each kind once, in one job of eight processes."""
    trials = make_trials("real", sizes=[8], kinds=REAL_KINDS, trials=1, clean=0)
    results = list(Session(tmp_path, 0).go_on(trials, float("inf")))
    assert [result.trial.kind for result in results if result.is_located] == list(REAL_KINDS)


@pytest.mark.sweep
@pytest.mark.real
def test_cables_of_a_testbed_are_located(tmp_path: Path) -> None:
    """A slow one and a lossy one, of eight hosts."""
    require_namespaces()
    trials = make_trials("testbed", sizes=[8], kinds=TESTBED_KINDS, trials=1, clean=0)
    results = list(Session(tmp_path, 0).go_on(trials, float("inf")))
    assert [result.trial.kind for result in results if result.is_located] == list(TESTBED_KINDS)
