"""Conformance: cases collected from every room, run, and judged."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.conformance import suite
from fabrictune.conformance.suite import SUBJECTS, Outcome, collect, has_failed, run_case, run_cases
from fabrictune.foundation.cases import Case, around, exactly


def case(got: float, trust: str = "A") -> Case:
    return Case(
        name="test.two",
        source="arithmetic",
        unit="",
        **around(2.0, 0.1),
        run=lambda: got,
        trust=trust,  # type: ignore[arg-type]
    )


def refuse() -> float:
    raise ValueError("no answer")


@pytest.mark.parametrize(("got", "has_passed"), [(1.8, True), (2.2, True), (1.79, False), (2.21, False)])
def test_a_band_includes_its_ends(got: float, has_passed: bool) -> None:
    """2 plus or minus 10 % is 1.8 to 2.2."""
    assert run_case(case(got)).has_passed is has_passed


def test_a_case_that_raises_has_failed_and_the_next_is_run() -> None:
    """An exception is reported as nothing got, with its text, and ends nothing else."""
    broken = Case(name="test.broken", source="none", unit="", **exactly(1.0), run=refuse)
    outcomes = run_cases([broken, case(2.0)])
    assert [outcome.has_passed for outcome in outcomes] == [False, True]
    assert outcomes[0].as_json()["got"] is None
    assert outcomes[0].error == "ValueError: no answer"


def test_what_is_no_number_has_failed() -> None:
    """nan lies in no band."""
    assert not run_case(case(float("nan"))).has_passed


def test_numpys_numbers_are_json_too() -> None:
    """A band computed with arrays has ends that `json` does not know, and their comparison is no bool."""
    numbers: dict[str, Any] = dict(zip(("low", "expected", "high"), np.arange(1, 4), strict=True))
    outcome = json.loads(json.dumps(run_case(replace(case(2.0), **numbers)).as_json()))
    assert (outcome["expected"], outcome["band"], outcome["passed"]) == (2, [1, 3], True)


def test_only_exact_cases_decide() -> None:
    """A figure of another simulator (class B) that is missed is printed, and fails nothing."""
    assert has_failed([run_case(case(3.0))])
    assert not has_failed([run_case(case(3.0, trust="B"))])
    assert not has_failed([Outcome(case=case(2.0), got=2.0)])


def test_names_begin_with_their_room() -> None:
    """`netsim.` finds the cases of netsim, and every name is used once."""
    names = [case.name for case in collect()]
    assert len(set(names)) == len(names)
    for room in SUBJECTS:
        assert [name for name in names if name.startswith(f"{room}.")] == [case.name for case in collect([f"{room}."])]


def test_every_module_with_cases_is_listed() -> None:
    """A module left out of `SUBJECTS` would never be rerun."""
    folder = Path(suite.__file__).parent
    modules = {
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if "def cases()" in path.read_text()
    }
    assert modules == {f"{room}.{subject}" for room, subjects in SUBJECTS.items() for subject in subjects}


def test_json_has_what_a_judge_reads(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a case: name, expected, got, band, passed, source."""
    code = run(["conformance", "collectives.", "--json"])
    outcomes = json.loads(capsys.readouterr().out)
    assert code == 0
    assert outcomes
    for outcome in outcomes:
        assert {"name", "expected", "got", "band", "passed", "source"} <= set(outcome)
        assert outcome["name"].startswith("collectives.")
        low, high = outcome["band"]
        assert outcome["passed"] == (low <= outcome["got"] <= high)
