"""Conformance: cases collected from every room, run, and judged."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.conformance import suite
from fabrictune.conformance.suite import SUBJECTS, CaseResult, collect_cases, has_failed, run_case, run_cases
from fabrictune.foundation.cases import Case, around, exactly


def case(actual: float, trust: str = "A") -> Case:
    return Case(
        name="test.two",
        source="arithmetic",
        unit="",
        **around(2.0, 0.1),
        run=lambda: actual,
        trust=trust,  # type: ignore[arg-type]
    )


def refuse() -> float:
    raise ValueError("no answer")


@pytest.mark.parametrize(("actual", "has_passed"), [(1.8, True), (2.2, True), (1.79, False), (2.21, False)])
def test_a_band_includes_its_ends(actual: float, has_passed: bool) -> None:
    """2 plus or minus 10 % is 1.8 to 2.2."""
    assert run_case(case(actual)).has_passed is has_passed


def test_a_case_that_raises_has_failed_and_the_next_is_run() -> None:
    """An exception is reported as no actual value, with its text, and ends nothing else."""
    broken = Case(name="test.broken", source="none", unit="", **exactly(1.0), run=refuse)
    results = run_cases([broken, case(2.0)])
    assert [result.has_passed for result in results] == [False, True]
    assert results[0].as_json()["actual"] is None
    assert results[0].error == "ValueError: no answer"


def test_what_is_no_number_has_failed() -> None:
    """nan lies in no band."""
    assert not run_case(case(float("nan"))).has_passed


def test_numpys_numbers_are_json_too() -> None:
    """A band computed with arrays has ends that `json` does not know, and their comparison is no bool."""
    numbers: dict[str, Any] = dict(zip(("low", "expected", "high"), np.arange(1, 4), strict=True))
    result = json.loads(json.dumps(run_case(replace(case(2.0), **numbers)).as_json()))
    assert (result["expected"], result["tolerance"], result["passed"]) == (2, [1, 3], True)


def test_only_exact_cases_decide() -> None:
    """A figure of another simulator (class B) that is missed is printed, and fails nothing."""
    assert has_failed([run_case(case(3.0))])
    assert not has_failed([run_case(case(3.0, trust="B"))])
    assert not has_failed([CaseResult(case=case(2.0), actual=2.0)])


def test_names_begin_with_their_room() -> None:
    """`netsim.` finds the cases of netsim, and every name is used once."""
    names = [case.name for case in collect_cases()]
    assert len(set(names)) == len(names)
    for room in SUBJECTS:
        assert [name for name in names if name.startswith(f"{room}.")] == [
            case.name for case in collect_cases([f"{room}."])
        ]


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
    results = json.loads(capsys.readouterr().out)
    assert code == 0
    assert results
    for result in results:
        assert {"name", "expected", "actual", "tolerance", "passed", "source"} <= set(result)
        assert result["name"].startswith("collectives.")
        low, high = result["tolerance"]
        assert result["passed"] == (low <= result["actual"] <= high)
