"""ObservedFlows: flows observed on a real network, whatever the source.

Readers of captures, of queue-pair listings and of NCCL's logs all write this one table; the roof puts it on a fabric. A
row is one direction of one queue pair. Each reader knows something else: a capture has addresses and source ports, a
listing has device names and queue-pair numbers, a log has hosts. What a row does not know is UNKNOWN, or "" for a name;
`origin` says where each row was found, so that a finding can name its evidence.

Left out: IPv6.

Shapes: F flows.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Any, Self

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.rocev2 import UDP_PORT, source_port
from fabrictune.foundation.tables import arrow_texts, columns_of, read_table, texts_of, write_table

UNKNOWN = -1

TextColumn = tuple[str, ...]

_TABLE = "ObservedFlows"
_RANGES = {  # the most that a known value may be
    "source_ipv4": 2**32 - 1,
    "destination_ipv4": 2**32 - 1,
    "source_qpn": 2**24 - 1,
    "destination_qpn": 2**24 - 1,
    "source_port": 2**16 - 1,
    "destination_port": 2**16 - 1,
}


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One end of a flow, as far as it is known: an address, or a device of a host."""

    ipv4: int = UNKNOWN
    host: str = ""
    device: str = ""  # mlx5_0

    def __str__(self) -> str:
        name = f"{self.host}/{self.device}" if self.host and self.device else self.host or self.device
        address = ipv4_text(self.ipv4) if self.ipv4 != UNKNOWN else ""
        return f"{name} ({address})" if name and address else name or address or "unknown"


@dataclass(frozen=True, kw_only=True)
class ObservedFlows:
    """F flows, each from the end that sends to the end that receives."""

    source_ipv4_F: IntArray
    source_host_F: TextColumn
    source_device_F: TextColumn
    source_qpn_F: IntArray
    destination_ipv4_F: IntArray
    destination_host_F: TextColumn
    destination_device_F: TextColumn
    destination_qpn_F: IntArray
    source_port_F: IntArray  # UDP
    destination_port_F: IntArray
    packets_F: IntArray
    bytes_F: IntArray  # of payload: 0 for a flow of acknowledgements alone
    first_ns_F: IntArray  # since 1970, or since whatever the observer counted from
    last_ns_F: IntArray
    origin_F: TextColumn  # file, and line or row
    notes: tuple[str, ...] = ()  # what was left out, guessed or cut short

    def __post_init__(self) -> None:
        for name, is_text in _columns().items():
            column = getattr(self, name)
            if not is_text:
                column = np.asarray(column, dtype=np.int64)
                if column.flags.writeable:
                    column = column.copy()
                    column.setflags(write=False)
            object.__setattr__(self, name, tuple(column) if is_text else column)
        lengths = {name: len(getattr(self, name)) for name in _columns()}
        if set(lengths.values()) != {len(self)}:
            raise _error(f"columns of unequal length: {lengths}")
        for name, highest in _RANGES.items():
            column = getattr(self, f"{name}_F")
            is_wrong = (column < UNKNOWN) | (column > highest)
            if is_wrong.any():
                found = f"{name} {column[np.argmax(is_wrong)]} in row {np.argmax(is_wrong)}"
                raise _error(found, f"0 to {highest}, or {UNKNOWN} where it is not known")

    def __len__(self) -> int:
        return len(self.source_ipv4_F)

    def source(self, flow: int) -> Endpoint:
        """Return the end that sends."""
        return self._endpoint("source", flow)

    def destination(self, flow: int) -> Endpoint:
        """Return the end that receives."""
        return self._endpoint("destination", flow)

    def endpoints(self) -> tuple[tuple[Endpoint, ...], IntArray, IntArray]:
        """Return the ends that differ, and for each flow the places of its source and destination among them."""
        place_of: dict[tuple[int, str, str], int] = {}
        places = []
        for side in ("source", "destination"):
            names = ("ipv4", "host", "device")
            ipv4_F, host_F, device_F = (getattr(self, f"{side}_{name}_F") for name in names)
            keys = zip(ipv4_F.tolist(), host_F, device_F, strict=True)
            places.append(np.fromiter((place_of.setdefault(key, len(place_of)) for key in keys), np.int64, len(self)))
        ends = tuple(Endpoint(ipv4=ipv4, host=host, device=device) for ipv4, host, device in place_of)
        return ends, places[0], places[1]

    def label(self, flow: int) -> str:
        """Return the flow for people."""
        return f"{self.source(flow)} to {self.destination(flow)}"

    def take(self, rows: IntArray) -> Self:
        """Return some of the flows, in the order of `rows`."""
        chosen: dict[str, Any] = {
            name: tuple(getattr(self, name)[row] for row in rows.tolist()) if is_text else getattr(self, name)[rows]
            for name, is_text in _columns().items()
        }
        return replace(self, **chosen)

    def write(self, path: Path) -> None:
        """Write as Parquet."""
        import pyarrow as pa

        columns = {
            name.removesuffix("_F"): arrow_texts(getattr(self, name))
            if is_text
            else pa.array(getattr(self, name), pa.int64())
            for name, is_text in _columns().items()
        }
        write_table(path, columns, {"table": _TABLE, "notes": json.dumps(self.notes)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; raises TraceError."""
        table = read_table(path, error=TraceError)
        metadata = table.schema.metadata or {}
        if metadata.get(b"table", b"").decode(errors="replace") != _TABLE:
            raise TraceError(
                Mistake(where=str(path), found="a table of something else", allowed="observed flows, as we write them")
            )
        arrays = columns_of(table)
        del table  # so that a column that has been read is held once
        columns = {name: _read_column(arrays, name, is_text, path) for name, is_text in _columns().items()}
        try:
            notes = tuple(str(note) for note in json.loads(metadata.get(b"notes", b"[]")))
            return cls(**columns, notes=notes)
        except (ValueError, TypeError, RecursionError) as error:
            raise TraceError(Mistake(where=str(path), found=f"notes that cannot be read ({error})")) from error
        except TraceError as error:
            raise TraceError(*(replace(mistake, where=str(path)) for mistake in error.mistakes)) from None

    def _endpoint(self, end: str, flow: int) -> Endpoint:
        return Endpoint(
            ipv4=int(getattr(self, f"{end}_ipv4_F")[flow]),
            host=getattr(self, f"{end}_host_F")[flow],
            device=getattr(self, f"{end}_device_F")[flow],
        )


@dataclass(frozen=True, kw_only=True)
class Flow:
    """One row before it joins the table; readers that find flows one by one collect these."""

    source: Endpoint
    destination: Endpoint
    source_qpn: int = UNKNOWN
    destination_qpn: int = UNKNOWN
    source_port: int = UNKNOWN
    destination_port: int = UDP_PORT
    packets: int = UNKNOWN
    num_bytes: int = UNKNOWN
    first_ns: int = UNKNOWN
    last_ns: int = UNKNOWN
    origin: str = ""


def collect_flows(rows: Sequence[Flow], notes: Sequence[str] = ()) -> ObservedFlows:
    """Return the table of rows; a source port that was not seen follows from the two queue-pair numbers, if known."""
    source_qpn_F, destination_qpn_F = _ints(row.source_qpn for row in rows), _ints(row.destination_qpn for row in rows)
    seen_port_F = _ints(row.source_port for row in rows)
    return ObservedFlows(
        source_ipv4_F=_ints(row.source.ipv4 for row in rows),
        source_host_F=tuple(row.source.host for row in rows),
        source_device_F=tuple(row.source.device for row in rows),
        source_qpn_F=source_qpn_F,
        destination_ipv4_F=_ints(row.destination.ipv4 for row in rows),
        destination_host_F=tuple(row.destination.host for row in rows),
        destination_device_F=tuple(row.destination.device for row in rows),
        destination_qpn_F=destination_qpn_F,
        source_port_F=np.where(
            seen_port_F == UNKNOWN, predicted_source_port(source_qpn_F, destination_qpn_F), seen_port_F
        ),
        destination_port_F=_ints(row.destination_port for row in rows),
        packets_F=_ints(row.packets for row in rows),
        bytes_F=_ints(row.num_bytes for row in rows),
        first_ns_F=_ints(row.first_ns for row in rows),
        last_ns_F=_ints(row.last_ns for row in rows),
        origin_F=tuple(row.origin for row in rows),
        notes=tuple(notes),
    )


def concatenate_flows(tables: Sequence[ObservedFlows]) -> ObservedFlows:
    """Return the rows of all tables, one table after another."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return collect_flows([])
    columns: dict[str, Any] = {}
    for name, is_text in _columns().items():
        parts = [getattr(table, name) for table in tables]
        columns[name] = tuple(value for part in parts for value in part) if is_text else np.concatenate(parts)
    return ObservedFlows(**columns, notes=tuple(note for table in tables for note in table.notes))


def predicted_source_port(source_qpn_F: IntArray, destination_qpn_F: IntArray) -> IntArray:
    """Return the source port the kernel derives from both numbers, UNKNOWN where one of them is."""
    is_known_F = (source_qpn_F != UNKNOWN) & (destination_qpn_F != UNKNOWN)
    return np.where(is_known_F, source_port(source_qpn_F & 0xFFFFFF, destination_qpn_F & 0xFFFFFF), UNKNOWN)


def ipv4_text(address: int) -> str:
    """Return `192.168.70.4`."""
    return str(IPv4Address(address))


def parse_ipv4(text: str) -> int:
    """Return the number of a dotted address, UNKNOWN for any other text."""
    try:
        return int(IPv4Address(text))
    except AddressValueError:
        return UNKNOWN


def _ints(values: Iterator[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)


def _columns() -> dict[str, bool]:
    """Return the names of the columns, and whether each holds text."""
    return {field.name: field.type is TextColumn for field in fields(ObservedFlows) if field.name.endswith("_F")}


def _read_column(arrays: dict[str, Any], name: str, is_text: bool, path: Path) -> Any:
    import pyarrow as pa

    key = name.removesuffix("_F")
    holds = pa.string() if is_text else pa.int64()
    column = arrays.pop(key, None)
    if column is None or column.type != holds or column.null_count:
        found = f"no column {key!r} of {'text' if is_text else 'whole numbers'} without empty cells"
        raise TraceError(Mistake(where=str(path), found=found))
    return tuple(texts_of(column)) if is_text else column.to_numpy()


def _error(found: str, allowed: str = "") -> TraceError:
    return TraceError(Mistake(where="observed flows", found=found, allowed=allowed))
