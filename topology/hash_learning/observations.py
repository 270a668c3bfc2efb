"""Observed choices from files: a CSV of next hops, or the record of `topo probe`.

The CSV has the columns `source`, `destination` (IPv4), `source_port` and `next_hop`, and may have `switch` and
`destination_qp`. The next hop is what a probe named, or the port whose counter a flow's packets raised. A CSV of flows,
for which source ports are planned, needs neither `next_hop` nor `source_port`.
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address
from itertools import pairwise
from pathlib import Path

from fabrictune.foundation.csv_rows import MAX_MISTAKES, read_csv_rows
from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.rocev2 import FIRST_DYNAMIC_PORT
from fabrictune.topology.hash_learning.choices import Choice
from fabrictune.topology.hash_learning.headers import FlowHeader

MAX_BYTES = 16 * 2**20
MAX_ROWS = 100_000
UNNAMED_SWITCH = "switch"
_HEADER_COLUMNS = {"source": 2**32, "destination": 2**32, "source_port": 2**16, "destination_qp": 2**24}


def read_choices(path: Path) -> tuple[list[Choice], int]:
    """Return the choices of a CSV file or a record, and how many rows or hops were left out; raises InputError."""
    if path.is_dir():
        return _probed_choices(RunRecord.read(path), path)
    rows = _rows(path, required=("source", "destination", "source_port", "next_hop"))
    choices = [
        Choice(switch=row.get("switch") or UNNAMED_SWITCH, header=header, next_hop=row["next_hop"])
        for row, header in rows
        if row["next_hop"]
    ]
    return choices, len(rows) - len(choices)


def read_flows(path: Path) -> list[FlowHeader]:
    """Return the headers of a CSV file of flows; raises InputError."""
    return [header for _, header in _rows(path, required=("source", "destination"))]


def _rows(path: Path, *, required: Sequence[str]) -> list[tuple[Mapping[str, str], FlowHeader]]:
    mistakes: list[Mistake] = []
    rows: list[tuple[Mapping[str, str], FlowHeader]] = []
    for row in read_csv_rows(path, required=required, max_bytes=MAX_BYTES, mistakes=mistakes):
        if len(rows) == MAX_ROWS:
            allowed = f"{MAX_ROWS:,} rows; a few hundred are enough"
            raise InputError(Mistake(where=row.where, found="more rows", allowed=allowed))
        own = list(_cell_mistakes(row.cells, row.where))
        mistakes += own
        rows += [] if own else [(row.cells, _header(row.cells))]
    if mistakes:
        raise InputError(*mistakes[:MAX_MISTAKES])
    return rows


def _cell_mistakes(row: Mapping[str, str], where: str) -> Iterator[Mistake]:
    for name, limit in _HEADER_COLUMNS.items():
        text = row.get(name, "0")
        if name in ("source", "destination"):
            try:
                IPv4Address(text)
            except AddressValueError:
                yield Mistake(where=where, found=f"{name} {quote(text)}", allowed="an IPv4 address")
        elif not (text.isascii() and text.isdigit() and len(text) <= 8 and int(text) < limit):
            yield Mistake(where=where, found=f"{name} {quote(text)}", allowed=f"0 to {limit - 1}")


def _header(row: Mapping[str, str]) -> FlowHeader:
    return FlowHeader(
        source_ipv4=int(IPv4Address(row["source"])),
        destination_ipv4=int(IPv4Address(row["destination"])),
        source_port=int(row.get("source_port", FIRST_DYNAMIC_PORT)),
        destination_qpn=int(row.get("destination_qp", 0)),
    )


def _probed_choices(record: RunRecord, path: Path) -> tuple[list[Choice], int]:
    """Return what each hop of probed paths chose as the next one, and how many of these are unknown or changed."""
    if record.kind != "topo probe":
        found, allowed = f"a record of {record.kind!r}", "a record of `topo probe`, or a CSV file"
        raise InputError(Mistake(where=str(path), found=found, allowed=allowed))
    choices, num_left_out = [], 0
    for target in record.run["targets"]:
        source, destination = (int(IPv4Address(target[end])) for end in ("source", "target"))
        for way in target["paths"]:
            hops = [_hop_name(hop) for hop in way["hops"]]
            for switch, following in pairwise(hops):
                if not switch or not following:
                    num_left_out += len(way["source_ports"])
                    continue
                choices += [
                    Choice(
                        switch=switch.partition(":")[0],
                        header=FlowHeader(source_ipv4=source, destination_ipv4=destination, source_port=port),
                        next_hop=following,
                    )
                    for port in way["source_ports"]
                ]
    return choices, num_left_out


def _hop_name(hop: Mapping[str, Sequence[str]]) -> str:
    """Return the name of a hop, or its address; "" where it is unknown or not always the same."""
    if len(hop["addresses"]) != 1:
        return ""
    return hop["names"][0] or hop["addresses"][0]
