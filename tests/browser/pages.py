"""One page of every kind: of each kind of run record, of several records side by side, of a job's block.

The records are made from the schemas of their tables, so that a new kind of record and a new table have their page here
at once. Figures of such a page mean nothing; what it is made of is that of a real one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.foundation.checks import Check
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.schema import Column, TableSchema
from fabrictune.reports.block import Block, Cube, write_block
from fabrictune.reports.page import build_page, write_html
from tests.reports.conftest import two_flow_finding, two_flow_tables

NUM_ROWS = 8
HOSTILE = '"></script></title></style></svg><img src=x onerror="ran()"><svg onload="ran()"><script>ran()</script>\u202e'
KINDS = tuple(dict.fromkeys(kind for table in TABLES.values() for kind in table.kinds))
SEVERAL = ("two runs", "eight runs")
BLOCK = "block"

# Columns whose values must fit others of their table.
FITTING: Mapping[tuple[str, str], Any] = {
    ("objectives", "metric"): np.array(["time"] * NUM_ROWS),  # every point has it
    ("sensitivity", "metric"): np.array(["time"] * NUM_ROWS),
    ("rdma_transfers", "queue_pairs"): np.ones(NUM_ROWS, np.int64),  # one case of eight pairs
    ("rdma_transfers", "size_bytes"): np.full(NUM_ROWS, 65536),
}


def write_pages(folder: Path, names: str = "") -> dict[str, Path]:
    """Write a page of every kind into a folder that exists; `names` stand in all that a record may name."""
    pages = {kind: [make_record(kind, names)] for kind in KINDS}
    pages["two runs"] = [make_record("sim run", names)] * 2
    pages["eight runs"] = [make_record("sim run", names, seed=seed) for seed in range(8)]
    paths = {
        kind: write_html(
            build_page(records, title=f"{kind} {names}".strip()), folder / f"{kind.replace(' ', '-')}.html"
        )
        for kind, records in pages.items()
    }
    return {**paths, BLOCK: write_block(make_block(names), folder / "block.html")}


def make_record(kind: str, names: str = "", *, seed: int = 1) -> RunRecord:
    """Return a record with every table that its kind may have, a finding, and a scenario; a seed later is slower."""
    tables = {schema.name: make_table(schema, names) for schema in TABLES.values() if kind in schema.kinds}
    if "transfers" in tables:
        tables["transfers"] = {**tables["transfers"], "finish_ps": tables["transfers"]["finish_ps"] + 10**6 * seed}
    finding = two_flow_finding(entity=f"tor0:swp3 {names}".strip(), evidence=(f"loads {names}",))
    run = {
        "name": f"trial {names}".strip(),
        "question": f"Which? {names}",
        "scenario": f"law: none # {names}\n",
        "seed": seed,
    }
    check = Check(rule=finding.id, subject=f"12 links {names}", num_found=1)
    return RunRecord(kind=kind, run=run, tables=tables, findings=(finding,), checks=(check,))


def make_table(schema: TableSchema, names: str) -> Columns:
    """Return rows of a table: the two ToRs where it is their fabric, else values of each column's type and unit."""
    if schema.name == "fabric":
        fabric = two_flow_tables()["fabric"]
        rail = np.where(fabric["nic"] >= 0, fabric["nic"] % 2, -1)  # two, for what compares them
        node_name = np.array([f"{name} {names}".strip() for name in fabric["node_name"]])
        return {**fabric, "rail": rail, "node_name": node_name}
    values = {column.name.replace("*", "key"): _values(column, names) for column in schema.columns}
    return {name: FITTING.get((schema.name, name), value) for name, value in values.items()}


def make_block(names: str) -> Block:
    """Return the block of a job of eight ranks, one of them dead."""
    place = [{"dp": rank // 4, "pp": rank // 2 % 2, "tp": rank % 2} for rank in range(8)]
    cubes = [
        Cube(
            name=str(rank),
            host=f"node{rank // 4} {names}",
            state="dead" if rank == 5 else "ok",
            detail=names,
            place=place[rank],
            values=(1.0 + rank / 50, 0.25, 0.0),
        )
        for rank in range(8)
    ]
    return Block(
        title=f"job {names}",
        axes={"dp": 2, "pp": 2, "tp": 2},
        cubes=cubes,
        states=("ok", "hung", "dead"),
        notes=(names,),
    )


def _values(column: Column, names: str) -> Any:
    row = np.arange(NUM_ROWS)
    if column.refers_to == "port":
        return row + 4  # some of them between the ToRs
    if column.refers_to == "nic":
        return row % 4
    if column.codes:
        codes = list(column.codes)
        return np.array([codes[at % len(codes)] for at in range(NUM_ROWS)])
    if column.type == "string":
        return np.array([f"{column.name} {at} {names}".strip() for at in range(NUM_ROWS)])
    scale = 1_000_000 if column.unit in ("ps", "ns", "bytes", "bit/s") else 1
    return row * scale if column.type == "int64" else (row + 0.5) / NUM_ROWS * scale
