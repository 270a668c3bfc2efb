"""Commands of the user's own that one of ours runs: what was typed after `--`."""

import subprocess
from collections.abc import Sequence

import click

from fabrictune.foundation.errors import InputError, Mistake


def wrapped_command(context: click.Context, *, next_step: str) -> list[str]:
    """Return the command after `--`; raises InputError where there is none."""
    typed: Sequence[str] = context.find_root().obj
    command = list(typed[typed.index("--") + 1 :]) if "--" in typed else []
    if not command:
        raise InputError(Mistake(where=context.command_path, found="no command", next_step=next_step))
    return command


def run_wrapped(command: Sequence[str], *, through: Sequence[str] = (), stdout: int | None = None) -> int:
    """Run a command, behind the words in `through`, and return its status; raises InputError where it cannot be."""
    try:
        return subprocess.run([*through, *command], check=False, stdout=stdout).returncode  # noqa: S603 - the user's
    except OSError as error:
        raise InputError(Mistake(where=command[0], found=f"cannot be run ({error.strerror})")) from None
