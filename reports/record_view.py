"""A run record as the page reads it: a section asks for a selection of columns and gets them checked.

A section declares each selection that it reads; what several sections read is declared here and checked when the record
is opened. A table that a run did not write is None, and its section is left out of the page. A run notes which tables
were read: what no section of the page has read is listed by `other_tables`.

Shapes: T transfers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.generated_tables import SelectedRows
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.transfers import FINISH_BOUNDS, select_flows
from fabrictune.foundation.record_files import RecordFile
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.reports.fabric_view import FABRIC, FabricView
from fabrictune.reports.selection import Selection, read_selection, select

T = TypeVar("T")
TRANSFERS = select(
    "transfers",
    "qp",
    "source",
    "destination",
    "bytes",
    "ready_ps",
    "finish_ps",
    "packets_sent",
    "packets_retransmitted",
    "cnps",
    "ideal_ps",
)
JOBS = select("transfers", "qp", "source", "destination", "part")
PORTS = select(
    "ports",
    "port",
    "tx_bytes",
    "dropped_packets",
    "ecn_marked_packets",
    "pauses",
    "paused_ps",
    "max_queue_bytes",
)
SAMPLES = select("samples", "time_ps", "port", "queue_bytes", "paused")
LOADS = select("loads", "port", "flows", "demand_bps", "rate_bps")
THROUGHPUT = select("throughput", "throughput_fraction")
REPLAYED_STEPS = select(
    "replayed_steps", "step", "duration_ps", "work_ps", "exposed_ps", "work_alone_ps", "lower_bound_ps", "part"
)
EXPOSED = select("exposed_communication", "step", "axis", "exposed_ps", "part")
READ_IN_PART: Mapping[str, frozenset[str]] = {  # tables of many rows: the columns that the page reads
    TRANSFERS.table: frozenset(TRANSFERS.columns)
    | frozenset(JOBS.columns)
    | frozenset(FINISH_BOUNDS)
    | {
        name.removeprefix("transfers.")
        for metric in METRICS.values()
        for name in metric.columns
        if name.startswith("transfers.")
    },
    THROUGHPUT.table: frozenset(THROUGHPUT.columns),
}
SHARED = (TRANSFERS, PORTS, SAMPLES, LOADS, THROUGHPUT, REPLAYED_STEPS, EXPOSED)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One record under the name it has on the page."""

    label: str
    record: RunRecord
    files: tuple[RecordFile, ...] = ()  # beside the tables
    _fabric: FabricView | None
    _checked: dict[Selection, Columns] = field(default_factory=dict)
    _tables_read: set[str] = field(default_factory=set)
    _kept: dict[str, Any] = field(default_factory=dict)

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """Return what several parts of the page ask for, made once."""
        if name not in self._kept:
            self._kept[name] = make()
        kept: T = self._kept[name]
        return kept

    @property
    def fabric(self) -> FabricView | None:
        """The fabric of the record, None where it has no such table."""
        self._tables_read.add(FABRIC.table)
        return self._fabric

    @property
    def tables_read(self) -> frozenset[str]:
        """Names of the tables of which anything was read."""
        return frozenset(self._tables_read)

    @property
    def fabric_columns(self) -> Columns | None:
        """The checked table `fabric`, in the record's order."""
        return self._checked.get(FABRIC)

    def port_label(self, port: int) -> str:
        """Return the link that a port sends into, its number where the run has no fabric."""
        return self.fabric.link_label(port) if self.fabric is not None else f"port {port}"

    def pair_label(self, source: int, destination: int) -> str:
        """Return the two NICs of a transfer, their numbers where the run has no fabric."""
        if self.fabric is None:
            return f"NIC {source} → NIC {destination}"
        return f"{self.fabric.nic_label(source)} → {self.fabric.nic_label(destination)}"

    def unread(self) -> Self:
        """Return the run as one of which nothing was read yet; what was checked remains so."""
        return replace(self, _tables_read=set())

    def table(self, selection: Selection) -> Columns | None:
        """Return the selected columns, None where the run has no such table; raises RecordError naming the column."""
        table = self.record.tables.get(selection.table)
        if table is None:
            return None
        self._tables_read.add(selection.table)
        if selection not in self._checked:
            with _labelled(self.label):
                self._checked[selection] = read_selection(table, selection, self._fabric)
        return self._checked[selection]

    def rows(self, selection: Selection) -> Columns | None:
        """Return the same, None also where the table has no row."""
        table = self.table(selection)
        return table if table is not None and len(table[selection.columns[0]]) else None

    @property
    def flows(self) -> Columns | None:
        """The transfers that moved bytes over the fabric, None where the run has no transfers."""
        transfers = self.table(TRANSFERS)
        return select_flows(transfers) if transfers is not None else None

    @property
    def finished(self) -> Columns | None:
        """The transfers that moved bytes over the fabric and finished, or None."""
        transfers = self.table(TRANSFERS)
        if transfers is None:
            return None
        is_finished_T = (transfers["qp"] >= 0) & (transfers["bytes"] > 0) & (transfers["finish_ps"] >= 0)
        return SelectedRows(transfers, is_finished_T) if is_finished_T.any() else None

    @property
    def span_ps(self) -> int:
        """Time from the first transfer ready to the last finish so far, 0 where nothing finished."""
        transfers = self.table(TRANSFERS)
        if transfers is None:
            return 0
        has_finished_T = transfers["finish_ps"] >= 0
        if not has_finished_T.any():
            return 0
        return max(int(transfers["finish_ps"].max()) - int(transfers["ready_ps"][has_finished_T].min()), 0)


def open_run(record: RunRecord, label: str, files: Sequence[RecordFile] = ()) -> Run:
    """Return the record with what several sections read checked; raises RecordError naming label, table and column.

    `files` are those of its folder beside the tables.
    """
    run = view_record(record, label, files)
    for selection in SHARED:
        run.table(selection)
    return run.unread()


def view_record(record: RunRecord, label: str, files: Sequence[RecordFile] = ()) -> Run:
    """Return the record with its fabric checked alone: for one question, which checks the columns that it asks for."""
    table, checked = record.tables.get(FABRIC.table), dict[Selection, Columns]()
    with _labelled(label):
        if table is not None:
            checked[FABRIC] = read_selection(table, FABRIC, None)
        fabric = FabricView.from_table(checked[FABRIC]) if checked else None
    return Run(label=label, record=record, files=tuple(files), _fabric=fabric, _checked=checked)


@contextmanager
def _labelled(label: str) -> Iterator[None]:
    """Put the label of a run before the place of every mistake."""
    try:
        yield
    except RecordError as error:
        raise RecordError(
            *(replace(mistake, where=f"{label}: {mistake.where}") for mistake in error.mistakes)
        ) from None
