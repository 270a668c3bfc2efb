"""Fabrics on disk: the project's own JSON file, which loses nothing, and the `fabric` table of run records.

The file holds columns rather than a tree, so that a 12,288-GPU fabric is some five megabytes and reads in well under a
second. The same fabric always gives the same bytes. Notes and findings of the files that a fabric was imported from are
in its own file too, so that no later reader takes what was assumed for what was read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.foundation.checks import Check, CheckReport
from fabrictune.foundation.documents import Document, load_json
from fabrictune.foundation.errors import FabricError, Mistake
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.records import Columns, parse_finding
from fabrictune.topology.fabric import Fabric, NodeKind

FORMAT = "fabrictune fabric 1"
MAX_FILE_BYTES = 64 * 2**20

# Sections of the file, with the Fabric's column behind each key.
REMARKS = ("notes", "findings", "checks")
_SECTIONS: Mapping[str, Mapping[str, str]] = {
    "nodes": {
        "name": "node_name_N",
        "kind": "node_kind_N",
        "tier": "node_tier_N",
        "group": "node_group_N",
    },
    "ports": {
        "name": "port_name_P",
        "node": "port_node_P",
        "peer": "port_peer_P",
        "rate_bps": "port_rate_bps_P",
        "delay_ps": "port_delay_ps_P",
        "nic": "port_nic_P",
    },
    "nics": {"host": "nic_host_C", "rail": "nic_rail_C", "ipv4": "nic_ipv4_C"},
}


def fabric_table(fabric: Fabric) -> Columns:
    """Return one row per port: the `fabric` table of a run record."""
    node_P = fabric.port_node_P
    nic_P = fabric.port_nic_P
    rail_P = np.full(fabric.num_ports, -1, np.int64)
    rail_P[nic_P >= 0] = fabric.nic_rail_C[nic_P[nic_P >= 0]]
    kind_names = np.array([kind.name.lower() for kind in NodeKind])
    return {
        "port": np.arange(fabric.num_ports),
        "node": node_P,
        "node_name": np.array(fabric.node_name_N)[node_P],
        "node_kind": kind_names[fabric.node_kind_N[node_P]],
        "tier": fabric.node_tier_N[node_P],
        "group": fabric.node_group_N[node_P],
        "port_name": np.array(fabric.port_name_P),
        "peer_port": fabric.port_peer_P,
        "rate_bps": fabric.port_rate_bps_P,
        "delay_ps": fabric.port_delay_ps_P,
        "nic": nic_P,
        "rail": rail_P,
    }


def write_fabric(fabric: Fabric, path: Path) -> None:
    """Write the fabric as JSON, one column a line; raises InputError."""
    lines = [f' "format": {json.dumps(FORMAT)}', f' "name": {json.dumps(fabric.name)}']
    lines += [f' "{key}": {_listed(values)}' for key, values in remarks(fabric).items()]
    for section, columns in _SECTIONS.items():
        values = {key: list(np.asarray(getattr(fabric, column)).tolist()) for key, column in columns.items()}
        body = ",\n".join(f'  "{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in values.items())
        lines.append(f' "{section}": {{\n{body}\n }}')
    with replaced_file(path) as half:
        half.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def remarks(fabric: Fabric) -> dict[str, list[Any]]:
    """Return the notes, findings and checks of the fabric's files as JSON values, without what is empty."""
    values: dict[str, list[Any]] = {
        "notes": list(fabric.notes),
        "findings": [asdict(finding) for finding in fabric.findings],
        "checks": [check.as_json() for check in fabric.checks],
    }
    return {key: value for key, value in values.items() if value}


def read_remarks(tree: Mapping[str, Any]) -> tuple[tuple[str, ...], CheckReport]:
    """Return notes, checks and their findings that `remarks` gave; raises ValueError for anything else."""
    notes, findings, checks = (tree.get(key, []) for key in REMARKS)
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ValueError("notes that are no list of text")
    try:
        found = tuple(parse_finding(row) for row in findings)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"findings that are none ({error})") from None
    try:
        return tuple(notes), CheckReport(checks=tuple(Check.from_json(row) for row in checks), findings=found)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"checks that are none ({error})") from None


def read_fabric(path: Path) -> Fabric:
    """Read what `write_fabric` wrote; raises InputError with every mistake in the file's form."""
    document = load_json(path, max_bytes=MAX_FILE_BYTES)
    mistakes = _check_head(document)
    columns: dict[str, Any] = {}
    if not mistakes:
        for section, keys in _SECTIONS.items():
            for key, column in keys.items():
                mistakes.extend(_read_column(document, section, key, column, columns))
        try:
            notes, checked = read_remarks(document.tree)
        except ValueError as error:
            mistakes.append(Mistake(where=str(path), found=str(error), allowed="those that fabrictune wrote"))
    if mistakes:
        raise FabricError(*mistakes)
    return Fabric(name=document.tree["name"], notes=notes, findings=checked.findings, checks=checked.checks, **columns)


def is_own_file(path: Path) -> bool:
    """Return whether the file says that it is a fabric of ours."""
    return FORMAT.encode() in read_head(path, 200)


def _listed(values: Sequence[Any]) -> str:
    """Return a JSON list, one value a line."""
    return "[\n" + ",\n".join(f"  {json.dumps(value)}" for value in values) + "\n ]"


def _check_head(document: Document) -> list[Mistake]:
    tree = document.tree
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        return [
            Mistake(
                where=document.where("format"),
                found="not a fabric written by fabrictune, or of another version",
                allowed=f'"format": "{FORMAT}"',
                next_step="import the topology from its source again",
            )
        ]
    mistakes = []
    if not isinstance(tree.get("name"), str):
        mistakes.append(Mistake(where=document.where("name"), found="no name", allowed="text"))
    mistakes.extend(
        Mistake(where=document.where(section), found=f"no {section}", allowed="an object of columns")
        for section in _SECTIONS
        if not isinstance(tree.get(section), dict)
    )
    return mistakes


def _read_column(
    document: Document, section: str, key: str, column: str, columns: dict[str, Any]
) -> tuple[Mistake, ...]:
    values = document.tree[section].get(key)
    kind = str if column.startswith(("node_name", "port_name")) else int
    if not isinstance(values, list) or not all(type(value) is kind for value in values):
        allowed = "a list of text" if kind is str else "a list of whole numbers"
        return (Mistake(where=document.where(section, key), found="not the column it should be", allowed=allowed),)
    columns[column] = tuple(values) if kind is str else np.array(values, np.int64)
    return ()
