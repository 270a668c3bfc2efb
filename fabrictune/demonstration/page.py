"""The demo's page: both placements whole, the completion times and indicators of other laws, and the training."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fabrictune.demonstration.simulations import Simulations
from fabrictune.demonstration.training import TwinnedTraining
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page, write_html

PAGE_NAME = "report.html"
TITLE = "A fabric, its collisions, three laws, and a training beside its prediction"
_LEFT_OUT = ("ports", "samples")  # of the other laws: loads of the same paths, and queues over time


def write_demo_page(simulations: Simulations, training: TwinnedTraining | None, path: Path) -> Path:
    """Write the page; returns its path. Raises InputError."""
    records = dict(_records(simulations, training))
    return write_html(build_page(list(records.values()), title=TITLE, labels=list(records)), path)


def _records(simulations: Simulations, training: TwinnedTraining | None) -> Iterator[tuple[str, RunRecord]]:
    for job in (simulations.bad, simulations.good):
        yield job.placement, RunRecord.read(job.directory)
    for run in simulations.laws:
        record = RunRecord.read(run.directory)
        tables = {name: table for name, table in record.tables.items() if name not in _LEFT_OUT}
        yield f"{simulations.bad.placement}, {run.law}", replace(record, tables=tables)
    if training:
        yield "training", RunRecord.read(training.directory)
