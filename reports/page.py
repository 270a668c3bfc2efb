"""Run records in, one self-contained HTML page out.

The page loads nothing: style, script and drawings are in the file, and its content security policy lets the browser
run the one script whose hash it names and fetch nothing at all. It reads without the script. The same records give the
same bytes. Sections whose tables no record has are left out, and tables that no section reads are listed.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.foundation.output_files import check_output_file, replaced_file
from fabrictune.foundation.record_files import RecordFile, files_beside_tables
from fabrictune.foundation.record_folders import PAGE
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.visible_text import printable
from fabrictune.reports.answers.answer import Answer
from fabrictune.reports.answers.catalog import answer_of
from fabrictune.reports.attribution import attribution_section
from fabrictune.reports.blocks import Section, listed, merge_alike, shortened
from fabrictune.reports.calibration import calibration_section
from fabrictune.reports.changes import changes_section
from fabrictune.reports.checks import checks_section
from fabrictune.reports.cluster import cluster_section
from fabrictune.reports.collectives import collectives_section
from fabrictune.reports.collisions import collisions_section
from fabrictune.reports.comparison import comparison_section
from fabrictune.reports.completion import completion_section
from fabrictune.reports.congestion import congestion_section
from fabrictune.reports.differences import differences_section
from fabrictune.reports.effective import effective_section
from fabrictune.reports.fabric_drawing import fabric_section
from fabrictune.reports.faults import faults_section
from fabrictune.reports.gantt import gantt_section
from fabrictune.reports.hangs import hangs_section
from fabrictune.reports.kpi_table import kpi_section
from fabrictune.reports.loads import loads_section
from fabrictune.reports.nics import nics_section
from fabrictune.reports.other_tables import other_tables_section
from fabrictune.reports.pair_map import pair_map_section
from fabrictune.reports.places import Places
from fabrictune.reports.plans import plans_section
from fabrictune.reports.provenance import read_provenance
from fabrictune.reports.rails import rails_section
from fabrictune.reports.rates import rates_section
from fabrictune.reports.record_view import READ_IN_PART, Run, open_run
from fabrictune.reports.replay import replay_section
from fabrictune.reports.seed_studies import outcomes_section
from fabrictune.reports.seeds import seeds_section
from fabrictune.reports.startup import storms_section
from fabrictune.reports.stragglers import stragglers_section
from fabrictune.reports.survival import survival_section
from fabrictune.reports.sweeps import sweeps_section
from fabrictune.reports.timers import timers_section
from fabrictune.reports.training import training_section
from fabrictune.reports.twin import twin_section
from fabrictune.reports.verdict import make_verdict
from fabrictune.reports.whatif import whatif_section

TEMPLATES = Path(__file__).with_name("templates")
SCRIPTS = ("page.js", "filter.js", "save.js")
PAGE_NAME = PAGE
MAX_LABEL = 40  # characters
T = TypeVar("T")

# In the order of the page: first how good it is, then where, then why. A new section is a function of the runs that
# returns its blocks, or None where no run has its tables, and a line here. Tables that no section reads are listed
# after them all, as their schemas describe them.
SECTIONS = (
    differences_section,
    checks_section,
    kpi_section,
    changes_section,
    seeds_section,
    cluster_section,
    comparison_section,
    outcomes_section,
    sweeps_section,
    whatif_section,
    survival_section,
    effective_section,
    stragglers_section,
    collectives_section,
    attribution_section,
    calibration_section,
    storms_section,
    plans_section,
    twin_section,
    training_section,
    gantt_section,
    replay_section,
    pair_map_section,
    fabric_section,
    loads_section,
    collisions_section,
    completion_section,
    rails_section,
    rates_section,
    congestion_section,
    faults_section,
    hangs_section,
    nics_section,
    timers_section,
)
SUMS = (kpi_section, changes_section)  # they show numbers made from tables, not the tables


def build_page(
    records: Sequence[RunRecord],
    *,
    title: str,
    labels: Sequence[str] = (),
    files: Sequence[Sequence[RecordFile]] = (),
) -> str:
    """Return the page on one record, or on several side by side.

    `labels` name the records on the page; without them a record is called by its `run["name"]`, else by its kind.
    `files` are those of each record's folder beside its tables. Raises RecordError naming the table and column of a
    malformed record.
    """
    runs = open_runs(records, labels, files)
    return _render(title, runs, make_sections(runs))


def make_sections(runs: Sequence[Run]) -> list[Section]:
    """Return the sections that have something to show, the last of them with the tables that no other has read."""
    sections: list[Section] = []
    labels = [run.label for run in runs]
    tables_drawn: dict[str, set[str]] = {run.label: set() for run in runs}
    for make in SECTIONS:
        unread = [run.unread() for run in runs]
        section = make(unread)
        if section is None:
            continue
        sections.append(section)
        for run in unread if make not in SUMS else ():
            tables_drawn[run.label] |= run.tables_read
    others = other_tables_section(runs, tables_drawn)
    if others is not None:
        sections.append(others)
    return [replace(section, blocks=merge_alike(section.blocks, labels)) for section in sections]


def write_page(directories: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page on the records in these folders, by default as report.html in the first; returns its path.

    Raises RecordError for a folder without a sound record, InputError where the page cannot be written.
    """
    if not directories:
        raise RecordError(Mistake(where="", found="no run record", next_step="name at least one folder a run wrote"))
    path = out or directories[0] / PAGE_NAME
    check_output_file(path, makes_parents=True)
    records = [RunRecord.read(directory, columns=READ_IN_PART) for directory in directories]
    labels = [directory.resolve().name for directory in directories]
    names = dict.fromkeys(str(record.run.get("name", label)) for record, label in zip(records, labels, strict=True))
    files = [files_beside_tables(directory) for directory in directories]
    return write_html(build_page(records, title=" and ".join(names), labels=labels, files=files), path)


def write_html(html: str, path: Path) -> Path:
    """Write a page's text; returns its path. Raises InputError where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be written ({error.strerror})")) from error
    with replaced_file(path) as half:
        half.write_text(html, encoding="utf-8")
    return path


def environment() -> Environment:
    """Return what fills in templates: values are escaped, and what a browser would obey is shown as its escape."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )


def asset(name: str) -> Markup:
    """Return the text of a style sheet or a script."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 -- our own file, no user's text in it


def policy_hash(content: str) -> str:
    """Return what a content security policy calls this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def open_runs(
    records: Sequence[RunRecord], labels: Sequence[str], files: Sequence[Sequence[RecordFile]] = ()
) -> list[Run]:
    """Return the records as the page reads them, each under a label of its own; raises RecordError."""
    assert records, "a page is about at least one record"
    assert not files or len(files) == len(records), "the files of each record"
    assert not labels or len(labels) == len(records), "a label for each record"
    whole_labels = list(labels) or [str(record.run.get("name", record.kind)) for record in records]
    runs: list[Run] = []
    for record, whole_label, of_record in zip(records, whole_labels, files or [()] * len(records), strict=True):
        taken = {run.label for run in runs}
        label = shortened(whole_label, MAX_LABEL)
        name, count = label, 1
        while name in taken:
            count += 1
            name = f"{label} ({count})"
        runs.append(open_run(record, name, of_record))
    return runs


def _render(title: str, runs: Sequence[Run], sections: Sequence[Section]) -> str:
    style, script = asset("page.css"), Markup("").join(map(asset, SCRIPTS))
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            questions=_questions(runs),
            answers=_answers(runs),
            verdict=make_verdict(runs),
            has_several=len(runs) > 1,
            sections=sections,
            places=Places.of(runs),
            provenance=read_provenance(runs),
            style=style,
            script=script,
            style_hash=policy_hash(style),
            script_hash=policy_hash(script),
        )
    )


def _answers(runs: Sequence[Run]) -> list[tuple[str, Answer]]:
    """Return (runs, answer) for each answer; without runs where all share it."""
    return _by_what_is_said({run.label: answer for run in runs if (answer := answer_of(run)) is not None}, len(runs))


def _questions(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return (runs, question) for each question that a scenario set out to answer; without runs where all share it."""
    asked = {run.label: run.record.run.get("question") for run in runs}
    return _by_what_is_said({label: text for label, text in asked.items() if isinstance(text, str) and text}, len(runs))


def _by_what_is_said(said: Mapping[str, T], num_runs: int) -> list[tuple[str, T]]:
    """Return (runs, what they say), each once; without runs where all say the same."""
    labels: dict[T, list[str]] = {}
    for label, what in said.items():
        labels.setdefault(what, []).append(label)
    return [("" if len(names) == num_runs else listed(names), what) for what, names in labels.items()]
