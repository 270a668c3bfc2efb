"""The option `--findings-file`: findings and checks of a command also as a file that a CI system reads."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.foundation.errors import InputError, Mistake

if TYPE_CHECKING:
    from fabrictune.foundation.checks import Check
    from fabrictune.foundation.findings import Finding, Severity

KEY = "fabrictune.findings_files"  # in the context of a command
ENDINGS = (".sarif", ".xml")


def _check(context: click.Context, option: click.Parameter, paths: tuple[Path, ...]) -> None:
    if not paths:
        return
    from fabrictune.foundation.output_files import check_output_file

    for path in paths:
        if path.suffix not in ENDINGS:
            where = f"{context.command_path}: {option.opts[0]}"
            allowed = ".sarif for SARIF, .xml for JUnit"
            raise InputError(Mistake(where=where, found=f"the ending {path.suffix!r}", allowed=allowed))
        check_output_file(path)
    context.meta[KEY] = paths


findings_file_option = click.option(
    "--findings-file",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    expose_value=False,
    callback=_check,
    help="Also write findings and checks to FILE: .sarif (SARIF) or .xml (JUnit); repeatable.",
)


def write_findings_files(findings: "Sequence[Finding]", checks: "Sequence[Check]", least: "Severity | None") -> None:
    """Write the files that the running command was asked for; findings at `least` and above fail a test of JUnit."""
    context = click.get_current_context(silent=True)
    paths: tuple[Path, ...] = () if context is None else context.meta.get(KEY, ())
    if not context or not paths:
        return
    from fabrictune.foundation.finding_files.junit import junit_text
    from fabrictune.foundation.finding_files.sarif import sarif_text
    from fabrictune.foundation.output_files import replaced_file

    command = shlex.join(["fabrictune", *context.find_root().obj])
    for path in paths:
        is_sarif = path.suffix == ".sarif"
        text = sarif_text(findings, checks, command) if is_sarif else junit_text(findings, checks, command, least)
        with replaced_file(path) as half:
            half.write_text(text)
