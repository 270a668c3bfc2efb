"""Records as commands write them: with the command line that made them."""

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from foundation.records import RunRecord


def with_command(record: "RunRecord") -> "RunRecord":
    """Return the record with `command` in its head: what was typed, as a shell would take it again."""
    arguments = click.get_current_context().find_root().obj
    return replace(record, run={**record.run, "command": shlex.join(["fabrictune", *arguments])})
