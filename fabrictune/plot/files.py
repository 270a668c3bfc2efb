"""Every figure that records have the tables for, as files; and their tables as CSV.

A figure of several records has a curve of each; of a kind that shows one, each record has a file of its own.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.records import RunRecord
from fabrictune.plot import figures
from fabrictune.plot.figures import NothingToDrawError
from fabrictune.plot.rendering import save
from fabrictune.reports.page import open_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JOINT: Mapping[str, "Callable[[Sequence[RunRecord], Sequence[str]], Figure]"] = {
    "completion-times": figures.completion_times,
    "tail": figures.tail,
    "slowdowns": figures.slowdowns,
    "link-loads": figures.link_loads,
    "training-loss": figures.training_loss,
    "bus-bandwidth": figures.bus_bandwidth,
}
SINGLE: Mapping[str, "Callable[[RunRecord], Figure]"] = {
    "queues": figures.queues,
    "throughput": figures.throughput,
    "flows": figures.flows,
    "sweep": figures.sweep,
    "whatif": figures.whatif,
    "survival": figures.survival,
    "effective-time": figures.effective_time,
    "fit-errors": figures.fit_errors,
    "startup": figures.startup,
    "pair-map": figures.pair_map,
}


def write_figures(records: Sequence[RunRecord], labels: Sequence[str], folder: Path, ending: str) -> list[Path]:
    """Draw all figures that any of the records has the tables for, as .svg, .pdf or .png, and return their files.

    Raises InputError where there are none, RecordError for a malformed table, UnavailableError without matplotlib.
    """
    drawn = list(_figures(records, _told_apart(records, labels)))
    if not drawn:
        raise InputError(
            Mistake(
                where=", ".join(labels),
                found="no table that a figure is drawn of",
                next_step="`report build` shows all tables, and --format csv writes them",
            )
        )
    folder.mkdir(parents=True, exist_ok=True)
    return [save(figure, folder / f"{name}.{ending}") for name, figure in drawn]


def write_csv(records: Sequence[RunRecord], labels: Sequence[str], folder: Path) -> list[Path]:
    """Write all tables of the records as CSV, with names of ports and hosts, and return their files."""
    from pyarrow import csv

    folder.mkdir(parents=True, exist_ok=True)
    labels, written = _told_apart(records, labels), list[Path]()
    for label, record in zip(labels, records, strict=True):
        for name in sorted(record.tables):
            written.append(folder / f"{_prefix(label, labels)}{name}.csv")
            with replaced_file(written[-1]) as half, half.open("wb") as file:
                csv.write_csv(record.table(name), file)
    return written


def _figures(records: Sequence[RunRecord], labels: Sequence[str]) -> "Iterator[tuple[str, Figure]]":
    for name, draw in JOINT.items():
        if figure := _joint(draw, records, labels):
            yield name, figure
    for label, record in zip(labels, records, strict=True):
        for name, draw_one in SINGLE.items():
            with suppress(NothingToDrawError):
                yield _prefix(label, labels) + name, draw_one(record)


def _joint(
    draw: "Callable[[Sequence[RunRecord], Sequence[str]], Figure]",
    records: Sequence[RunRecord],
    labels: Sequence[str],
) -> "Figure | None":
    """Return a figure of those records that have what it is drawn of; None where none has."""
    own = dict(zip(labels, records, strict=True))
    while own:
        try:
            return draw([*own.values()], [*own])
        except NothingToDrawError as error:
            own = {label: record for label, record in own.items() if label not in error.labels}
    return None


def _told_apart(records: Sequence[RunRecord], labels: Sequence[str]) -> list[str]:
    """Return the labels as the page has them: two that are alike get a number."""
    return [run.label for run in open_runs(records, labels)]


def _prefix(label: str, labels: Sequence[str]) -> str:
    """Return what a file's name begins with: a record's number and label, where there are several."""
    if len(labels) == 1:
        return ""
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-.") or "record"
    return f"{labels.index(label) + 1}-{plain}-"
