"""A few kills of the quick commands; `make kills` has two hundred of each."""

from pathlib import Path

import pytest

from tests.kills.commands import WRITINGS, Writing
from tests.kills.driver import kill_often
from tests.kills.inputs import Inputs, make_inputs

QUICK = ("topo build", "ecmp analyze", "sim run", "sim sweep", "trace import", "trace export", "report build")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return make_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.mark.parametrize("writing", [one for one in WRITINGS if one.name in QUICK], ids=lambda one: one.name)
def test_a_killed_command_leaves_the_earlier_result_or_the_new_one(
    writing: Writing, inputs: Inputs, tmp_path: Path
) -> None:
    """By SIGKILL and SIGTERM in turn; what is over before its signal counts as well."""
    tally = kill_often(writing, inputs, tmp_path, kills=2, seed=0)
    assert tally.faults == []
    assert tally.kills + tally.too_late >= 2
