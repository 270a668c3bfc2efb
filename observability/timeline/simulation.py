"""Timeline of a simulated run: transfers by host and queue pair, load of sampled ports, faults and the critical path.

A transfer's slice is the time in which it is sent, with its waits for the queue pair before where no start is recorded.
Times are picoseconds, rounded down. Transfers of a queue pair that overlap are drawn on several tracks.

Shapes: T transfers, K keys, S samples, N slices.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import Columns, IntArray
from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.simulation import SIMULATED
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_NS, PS_PER_S
from fabrictune.observability.timeline.lanes import lanes
from fabrictune.observability.timeline.timeline import Counters, Fact, Process, Slices, Timeline, Track

TABLES = ("transfers", "fabric", "samples", "faults", "aborts", "critical_path")
UNFINISHED = "transfers that never finished, left out"
DELAYS = "delays that move no bytes, left out"
NOT_SAMPLED = "ports that were not sampled"
RUN, PORTS = "run", "ports"  # processes of what belongs to no host


def simulation_timeline(record: RunRecord, *, facts: Mapping[str, Fact]) -> Timeline:
    """Return the timeline of a simulated run; raises RecordError where it lacks what is drawn."""
    if record.kind not in SIMULATED:
        where = f"record of {record.kind!r}"
        raise RecordError(Mistake(where=where, found="not a simulated run", allowed=", ".join(SIMULATED)))
    drawing = _Drawing()
    left_out = {**_add_run(drawing, record), **_add_ports(drawing, record), **_add_transfers(drawing, record)}
    return drawing.timeline({**facts, "times": "picoseconds, rounded down to nanoseconds", **left_out})


class _Drawing:
    """A timeline that grows track by track."""

    def __init__(self) -> None:
        self._processes: dict[str, int] = {}
        self._tracks: list[Track] = []
        self._slices: list[tuple[IntArray, Sequence[str], IntArray, IntArray, IntArray]] = []
        self._counters: list[tuple[int, IntArray, Any]] = []

    def track(self, process: str, name: str, **more: Any) -> int:
        """Add a track of a process, and the process where it is new."""
        place = self._processes.setdefault(process, len(self._processes))
        self._tracks.append(Track(process=place, name=name, **more))
        return len(self._tracks) - 1

    def add(
        self, track_N: IntArray, names: Sequence[str], begin_ps: IntArray, end_ps: IntArray, size: IntArray
    ) -> None:
        """Add slices."""
        self._slices.append((track_N, names, begin_ps // PS_PER_NS, end_ps // PS_PER_NS, size))

    def count(self, track: int, time_ps: IntArray, value: Any) -> None:
        """Add the values of a counter."""
        self._counters.append((track, time_ps // PS_PER_NS, value))

    def timeline(self, facts: Mapping[str, Fact]) -> Timeline:
        """Return the timeline."""
        none = (np.zeros(0, np.int64), (), *(np.zeros(0, np.int64),) * 3)
        track_N, names, start_ns_N, end_ns_N, bytes_N = zip(none, *self._slices, strict=True)
        counted = [(0, np.zeros(0, np.int64), np.zeros(0)), *self._counters]
        return Timeline(
            processes=tuple(Process(name=name) for name in self._processes),
            tracks=tuple(self._tracks),
            slices=Slices(
                track_N=np.concatenate(track_N),
                name_N=Texts.of(tuple(name for part in names for name in part)),
                start_ns_N=np.concatenate(start_ns_N),
                end_ns_N=np.concatenate(end_ns_N),
                facts={"bytes": np.concatenate(bytes_N)},
            ),
            counters=Counters(
                track_C=np.concatenate([np.full(len(times), track) for track, times, _ in counted]),
                time_ns_C=np.concatenate([times for _, times, _ in counted]),
                value_C=np.concatenate([values for _, _, values in counted]),
            ),
            facts=facts,
        )


def _add_transfers(drawing: _Drawing, record: RunRecord) -> dict[str, Fact]:
    """Draw the transfers that finished; returns what is left out."""
    table = _columns(record, "transfers")
    if table is None:
        return {}
    label_T, to_T = table["source_label"], table["destination_label"]
    begin_ps_T = np.where(table["start_ps"] >= 0, table["start_ps"], table["ready_ps"])
    is_finished_T = (table["finish_ps"] >= 0) & (begin_ps_T >= 0)
    is_delay_T = (table["qp"] < 0) & (table["bytes"] == 0)
    rows = np.flatnonzero(is_finished_T & ~is_delay_T)
    key_K, key_T = np.unique(
        np.stack([table[name][rows] for name in ("source", "qp", "destination")], axis=1), axis=0, return_inverse=True
    )
    begin_ps, end_ps = begin_ps_T[rows], np.maximum(table["finish_ps"], begin_ps_T)[rows]
    lane_T = lanes(key_T.ravel(), begin_ps // PS_PER_NS, end_ps // PS_PER_NS, may_nest=False)
    track_key_T = key_T.ravel() * (1 + int(lane_T.max(initial=0))) + lane_T
    places, first, place_T = np.unique(track_key_T, return_index=True, return_inverse=True)
    track_P = np.empty(len(places), np.int64)
    for place, row in enumerate(first.tolist()):
        source, qp, destination = key_K[key_T.ravel()[row]].tolist()
        name = f"queue pair {qp} to {to_T[rows[row]]}" if qp >= 0 else f"NVLink, GPU {source} to {destination}"
        host = str(label_T[rows[row]]).rpartition(":")[0] if qp >= 0 else f"GPU {source}"
        lane = int(lane_T[row])
        track_P[place] = drawing.track(host or "NICs", f"{name} ({lane + 1})" if lane else name)
    drawing.add(
        track_P[place_T.ravel()],
        [f"transfer {number}" for number in table["transfer"][rows].tolist()],
        begin_ps,
        end_ps,
        table["bytes"][rows],
    )
    return {UNFINISHED: int((~is_finished_T & ~is_delay_T).sum()), DELAYS: int(is_delay_T.sum())}


def _add_ports(drawing: _Drawing, record: RunRecord) -> dict[str, Fact]:
    """Draw load and queue of the sampled ports over time; returns how many ports were not sampled."""
    samples, fabric = _columns(record, "samples"), _columns(record, "fabric")
    if samples is None or fabric is None:
        return {}
    rate_of = dict(zip(fabric["port"].tolist(), fabric["rate_bps"].tolist(), strict=True))
    order = np.lexsort((samples["time_ps"], samples["port"]))
    splits = np.flatnonzero(np.diff(samples["port"][order])) + 1
    groups = [rows for rows in np.split(order, splits) if len(rows)]
    for rows in groups:
        port, label = int(samples["port"][rows[0]]), samples["port_label"][rows[0]]
        time_ps, sent = samples["time_ps"][rows], samples["tx_bytes"][rows]
        drawing.count(
            drawing.track(PORTS, f"queue of {label}", is_counter=True, unit="bytes"),
            time_ps,
            samples["queue_bytes"][rows].astype(float),
        )
        duration_ps = np.diff(time_ps)
        if rate_of.get(port) and (duration_ps > 0).all() and len(rows) > 1:
            load = 100.0 * np.diff(sent) * BITS_PER_BYTE * PS_PER_S / duration_ps / rate_of[port]
            track = drawing.track(PORTS, f"load of {label}", is_counter=True, unit="%")
            drawing.count(track, time_ps, np.append(load, 0.0))
    return {NOT_SAMPLED: len(rate_of) - len(groups)}


def _add_run(drawing: _Drawing, record: RunRecord) -> dict[str, Fact]:
    """Draw faults, queue pairs that gave up, and the critical path."""
    if (faults := _columns(record, "faults")) is not None:
        last_ps = int(record.run["end_ps"]) if isinstance(record.run.get("end_ps"), int) else 0
        end_ps = np.where(faults["end_ps"] < 0, max(last_ps, int(faults["begin_ps"].max(initial=0))), faults["end_ps"])
        for row, name in enumerate(faults["description"].tolist()):
            one = slice(row, row + 1)
            begin = faults["begin_ps"][one]
            drawing.add(_own_track(drawing, f"fault {row}"), [name], begin, np.maximum(end_ps[one], begin), _none(1))
    if (aborts := _columns(record, "aborts")) is not None and len(aborts["qp"]):
        track = _own_track(drawing, "queue pairs that gave up")
        names = [f"queue pair {qp}" for qp in aborts["qp"].tolist()]
        drawing.add(np.repeat(track, len(names)), names, aborts["time_ps"], aborts["time_ps"], _none(len(names)))
    if (path := _columns(record, "critical_path")) is not None and len(path["begin_ps"]):
        names = [
            f"work, rank {rank}" if axis == "work" else f"{axis} {operation} {tag}, rank {rank}"
            for axis, operation, tag, rank in zip(
                *(path[name].tolist() for name in ("axis", "operation", "tag", "rank")), strict=True
            )
        ]
        begin_ps, end_ps = path["begin_ps"], path["begin_ps"] + path["duration_ps"]
        lane = lanes(np.zeros_like(begin_ps), begin_ps // PS_PER_NS, end_ps // PS_PER_NS, may_nest=False)
        tracks = np.array([_own_track(drawing, "critical path")[0] for _ in range(1 + int(lane.max()))])
        drawing.add(tracks[lane], names, begin_ps, end_ps, _none(len(names)))
    return {}


def _own_track(drawing: _Drawing, name: str) -> IntArray:
    return np.array([drawing.track(RUN, name)])


def _none(num: int) -> IntArray:
    return np.full(num, UNKNOWN)


def _columns(record: RunRecord, name: str) -> Columns | None:
    """Return the columns of a table with their labels, None where the record has none; raises RecordError."""
    if name not in record.tables:
        return None
    table = record.table(name)
    columns = {column: table.column(column).to_numpy() for column in table.column_names}
    if name == "transfers":
        columns.setdefault("start_ps", np.full(table.num_rows, UNKNOWN))
    return columns
