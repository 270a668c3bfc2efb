"""A few kills of the quick commands; `make kills` has two hundred of each."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fabrictune.cli.main import fabrictune
from tests.kills.commands import OF_MANY, READS, UNTRIED, WRITINGS, Writing
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


def commands(
    group: click.Group, context: click.Context, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, context, (*words, name))
        else:
            yield " ".join((*words, name)), command


def test_every_command_that_writes_is_killed_or_has_a_reason() -> None:
    """A command writes by --out, and by every other option with a path that is not one of those that are read."""
    options = {
        (name, option.opts[0])
        for name, command in commands(fabrictune, click.Context(fabrictune))
        for option in command.params
        if isinstance(option, click.Option) and isinstance(option.type, click.Path | click.File)
    }
    writes = {name if option == "--out" else f"{name} {option}" for name, option in options if option not in READS}
    writes -= {f"{name} {option}" for name, option in options if option in OF_MANY and name != OF_MANY[option]}
    assert writes == {writing.name for writing in WRITINGS} | UNTRIED.keys()
    assert {option for _, option in options} >= set(READS)
    assert {"train plan", "sim sweep --plot"} <= writes
