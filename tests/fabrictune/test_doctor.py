"""What the doctor says of a machine."""

import json
import sys
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.doctor import CHECKS, Found, Requirement, examine, is_fit, look_for_module, look_for_program

OK = Found(state="ok", detail="here")
GONE = Found(state="missing", detail="not installed", next_step="install it")


def test_every_check_runs_and_says_what_to_do() -> None:
    """Whatever this machine has, each check has an answer, and a next step where it is not good."""
    diagnoses = examine(CHECKS)
    assert [one.name for one in diagnoses] == [check.name for check in CHECKS]
    assert all(one.next_step for one in diagnoses if one.state != "ok")


def test_this_machine_can_run_the_core() -> None:
    """The tests run here, so Python, Numba and the compiled engine are here."""
    assert is_fit(examine(CHECKS))


@pytest.mark.parametrize(("found", "is_needed", "fit"), [(OK, True, True), (GONE, True, False), (GONE, False, True)])
def test_only_what_the_core_needs_makes_a_machine_unfit(found: Found, is_needed: bool, fit: bool) -> None:
    """A missing Redis closes one door; a missing engine closes the house."""
    check = Requirement(name="thing", opens="doors", look=lambda: found, is_needed=is_needed)
    assert is_fit(examine([check])) is fit


def test_a_module_is_missing_unusable_or_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such module, one built for another library, one that needs a third, and one that works are four answers."""
    (tmp_path / "ft_foreign.py").write_text("raise ImportError('libibverbs.so.1: version mismatch')\n")
    (tmp_path / "ft_dependent.py").write_text("import ft_absent\n")
    (tmp_path / "ft_good.py").write_text("__version__ = '1.2'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    states = {
        name: look_for_module(name, "install it") for name in ("ft_absent", "ft_foreign", "ft_dependent", "ft_good")
    }
    for name in states:
        sys.modules.pop(name, None)
    assert [found.state for found in states.values()] == ["missing", "unusable", "unusable", "ok"]
    assert states["ft_foreign"].detail == "libibverbs.so.1: version mismatch"
    assert states["ft_dependent"].detail == "it needs ft_absent"


def test_a_program_is_looked_for_under_each_of_its_names() -> None:
    """`sh` is on every path; a name that is not falls back to the next."""
    assert look_for_program(["no-such-program", "sh"], "install it").state == "ok"
    assert look_for_program(["no-such-program"], "install it").state == "missing"


def test_json_lists_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a check, and whether the machine is fit."""
    assert run(["doctor", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["fit"] is True
    assert [check["name"] for check in result["checks"]] == [check.name for check in CHECKS]
