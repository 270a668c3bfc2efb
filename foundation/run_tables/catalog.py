"""Catalog of every table of every run record, by name. A new table is an entry in a module listed here."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from fabrictune.foundation.run_tables import (
    calibration,
    cluster,
    collectives,
    comparison,
    diagnostics,
    ecmp,
    fleet,
    hangs,
    rdma,
    replay,
    simulation,
    spans,
    survival,
    testbed,
    training,
)
from fabrictune.foundation.run_tables.schema import TableSchema

SUBJECTS: Mapping[str, Sequence[TableSchema]] = {
    "Simulation": simulation.TABLES,
    "Replayed traces": replay.TABLES,
    "ECMP and paths": ecmp.TABLES,
    "Sweeps and comparison": comparison.TABLES,
    "Collectives": collectives.TABLES,
    "Calibrations": calibration.TABLES,
    "Training": training.TABLES,
    "Effective training time": survival.TABLES,
    "Diagnostics of nodes": diagnostics.TABLES,
    "Spans of a job": spans.TABLES,
    "RDMA": rdma.TABLES,
    "Fleets": fleet.TABLES,
    "Validated clusters": cluster.TABLES,
    "Trainings beside their twin": testbed.TABLES,
    "Jobs that stand still": hangs.TABLES,
}
TABLES: Mapping[str, TableSchema] = {table.name: table for table in chain.from_iterable(SUBJECTS.values())}

assert len(TABLES) == sum(map(len, SUBJECTS.values())), "two tables of one name"


def check_tables(kind: str, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Assert that a record of a kind has only tables of the catalog, and these only columns of their types."""
    mistakes = [f"{name} is not in the catalog" for name in tables if name not in TABLES]
    for name, columns in tables.items():
        if table := TABLES.get(name):
            mistakes.extend(table.mistakes(columns))
            if kind not in table.kinds:
                mistakes.append(f"{name} is not a table of {kind!r}")
    assert not mistakes, "; ".join(mistakes)
