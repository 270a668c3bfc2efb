"""Records as commands write them, with the command line that made them, and as they end by printing them."""

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.output import print_json, print_lines, print_paragraph
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.records import notes_of

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.scenario.schema import Scenario


def with_command(record: "RunRecord") -> "RunRecord":
    """Return the record by the site's rules, with `command` in its head: what was typed, as a shell takes it."""
    arguments = click.get_current_context().find_root().obj
    record = site_rules().apply_to(record)
    return replace(record, run={**record.run, "command": shlex.join(["fabrictune", *arguments])})


def output_folder(out: Path, scenario: "Scenario | None" = None, *, option: str = "--out") -> Path:
    """Return the folder of a command's record; raises RecordError, before the work, where none can be written there.

    A record that is there and will be replaced is a warning, unless it answers the very text of `scenario`: such an
    answer can be had again.
    """
    from fabrictune.foundation.record_folders import read_text_of, record_place

    place = record_place(out)
    earlier = read_text_of(place)
    text = scenario.document.text if scenario and scenario.document else None
    if earlier is not None and (text is None or earlier != text):
        what = "another scenario or of other settings" if text is not None else "an earlier run"
        note = f"{place}: the record of {what} there is replaced; {option} DIR keeps both"
        warnings.warn(note, FabrictuneWarning, stacklevel=2)
    return place


def print_record(
    record: "RunRecord",
    directory: Path,
    values: Callable[[], Mapping[str, Any]],
    show: Callable[[], None],
    *,
    places: Sequence[str] = (),
    as_json: bool,
    quiet: bool,
    fail_on: str,
) -> int:
    """End a command whose record is in `directory`: print it with its findings, and return the exit code.

    For machines that is `values`, for people what `show` prints; only one of them is asked for. `places` are lines that
    say where else something was left.
    """
    if as_json:
        print_json({**record_json(record, directory), **values(), **judged_json(record)})
    else:
        if not quiet:
            show()
        print_findings(record)
        print_lines(places)
        print_answer(record, directory, quiet=quiet)
    return conclude(fail_on, record)


def record_json(record: "RunRecord", directory: Path) -> dict[str, Any]:
    """Return how a command's JSON value begins: where its record is, the answer of its page, and its notes."""
    return {"record": str(directory), "answer": _answer(record), "notes": notes_of(record)}


def print_answer(record: "RunRecord", directory: Path, *, quiet: bool, is_partial: bool = False) -> None:
    """Print how a command ends: the answer of its record's page unless `quiet`, and where the record is."""
    if not quiet:
        print_paragraph(f"answer: {_answer(record)}")
    print_lines([f"stopped; partial record in {directory}" if is_partial else f"record: {directory}"])


def _answer(record: "RunRecord") -> str | None:
    from fabrictune.reports.answers.catalog import sentence_of

    return sentence_of(record)
