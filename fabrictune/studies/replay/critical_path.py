"""Critical path of a replayed job: the chain of work and transfers that its end waited for.

From the transfer that finishes last back to the start, each time to what finished last of all that was waited for. The
pieces follow one another without a gap, so their times add up to the job's.

A transfer's time counts for one link of its path: the one with most traffic, bytes over rate. Where switches do not
keep to the path of the hash, that is the sender's own.

Shapes: N transfers, H links of a path.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.traces import UNKNOWN, Operation, TracedJob, TrafficTrace
from fabrictune.topology.network import NO_PORT, Network

WORK = "work"  # in place of an axis


@dataclass(frozen=True, kw_only=True)
class PathPiece:
    """A stretch of work before a request, or a transfer."""

    begin_ps: int
    end_ps: int
    request: int  # of the job
    is_work: bool
    qp: int  # UNKNOWN for work, and for transfers that do not cross the fabric


@dataclass(frozen=True, kw_only=True)
class CriticalPath:
    """The pieces of a job's critical path, in order of time."""

    pieces: tuple[PathPiece, ...]

    @classmethod
    def of(cls, traffic: TrafficTrace, job: TracedJob, ready_ps_N: IntArray, finish_ps_N: IntArray) -> "CriticalPath":
        """Return the path to the last transfer of a job; the times are those of all transfers, and all are known."""
        row = job.begin + int(np.argmax(finish_ps_N[job.begin : job.end]))
        first_operation = int(traffic.column("operation_N", job.begin, job.begin + 1)[0])
        pieces: list[PathPiece] = []
        while row != UNKNOWN:
            pieces += _pieces(traffic, first_operation, row, int(ready_ps_N[row]), int(finish_ps_N[row]))
            waits = traffic.waits(row, row + 1).row_D
            row = int(waits[np.argmax(finish_ps_N[waits])]) if len(waits) else UNKNOWN
        return cls(pieces=tuple(reversed(pieces)))

    def rows(self, job: TracedJob, ports: "BusiestPorts") -> list[dict[str, object]]:
        """Return rows of table `critical_path`: pieces of one request after another together."""
        rows: list[dict[str, object]] = []
        for pieces in _runs(self.pieces, job):
            first, requests = pieces[0], job.requests
            rows.append(
                {
                    "begin_ps": first.begin_ps,
                    "duration_ps": pieces[-1].end_ps - first.begin_ps,
                    "step": int(requests.step_N[first.request]),
                    "axis": WORK if first.is_work else requests.axis_N[first.request],
                    "operation": "" if first.is_work else _operation(job, first).name.lower(),
                    "tag": requests.tag_N[first.request],
                    "rank": int(requests.rank_N[first.request]),
                    "transfers": 0 if first.is_work else len(pieces),
                    "port": ports.longest(pieces),
                }
            )
        return rows

    def link_rows(self, ports: "BusiestPorts") -> list[dict[str, int]]:
        """Return rows of table `critical_links`, the port with most time first."""
        time_ps: dict[int, list[int]] = {}
        for piece in self.pieces:
            if (port := ports.of(piece.qp)) != UNKNOWN:
                time_ps.setdefault(port, []).append(piece.end_ps - piece.begin_ps)
        rows = [{"port": port, "duration_ps": sum(times), "transfers": len(times)} for port, times in time_ps.items()]
        return sorted(rows, key=lambda row: (-row["duration_ps"], row["port"]))


class BusiestPorts:
    """The busiest port on the path of each queue pair, by the bytes that all transfers bring to it."""

    def __init__(self, network: Network, traffic: TrafficTrace, *, keeps_paths: bool) -> None:
        fabric, path_QH = network.fabric, network.epochs[0].port_QDH[:, 0]
        self._path_QH = path_QH if keeps_paths else path_QH[:, :1]
        bytes_Q = np.zeros(len(path_QH))
        for begin, end in ranges(0, len(traffic)):
            qp_N = traffic.column("qp_N", begin, end)
            crosses_N = qp_N != UNKNOWN
            np.add.at(bytes_Q, qp_N[crosses_N], traffic.column("bytes_N", begin, end)[crosses_N])
        bytes_P = np.zeros(fabric.num_ports)
        for port_Q in path_QH.T:
            np.add.at(bytes_P, port_Q[port_Q != NO_PORT], bytes_Q[port_Q != NO_PORT])
        self._busy_P = bytes_P / fabric.port_rate_bps_P

    def of(self, qp: int) -> int:
        """Return the port; UNKNOWN for no queue pair."""
        if qp == UNKNOWN:
            return UNKNOWN
        path = self._path_QH[qp]
        path = path[path != NO_PORT]
        return int(path[np.argmax(self._busy_P[path])])

    def longest(self, pieces: tuple[PathPiece, ...]) -> int:
        """Return the port of the piece that takes longest; UNKNOWN where none crosses the fabric."""
        crossing = [piece for piece in pieces if piece.qp != UNKNOWN]
        return self.of(max(crossing, key=lambda piece: piece.end_ps - piece.begin_ps).qp) if crossing else UNKNOWN


def _pieces(
    traffic: TrafficTrace, first_operation: int, row: int, ready_ps: int, finish_ps: int
) -> Iterator[PathPiece]:
    """Yield the transfer, then the work before it; nothing that takes no time."""
    request = int(traffic.column("operation_N", row, row + 1)[0]) - first_operation
    work_ps = int(traffic.column("delay_ps_N", row, row + 1)[0])
    if finish_ps > ready_ps:
        qp = int(traffic.column("qp_N", row, row + 1)[0])
        yield PathPiece(begin_ps=ready_ps, end_ps=finish_ps, request=request, is_work=False, qp=qp)
    if work_ps:
        yield PathPiece(begin_ps=ready_ps - work_ps, end_ps=ready_ps, request=request, is_work=True, qp=UNKNOWN)


def _runs(pieces: tuple[PathPiece, ...], job: TracedJob) -> Iterator[tuple[PathPiece, ...]]:
    """Yield pieces that follow one another: stretches of one rank's work, transfers of one collective."""
    run: list[PathPiece] = []
    for piece in pieces:
        if run and _subject(piece, job) != _subject(run[-1], job):
            yield tuple(run)
            run = []
        run.append(piece)
    if run:
        yield tuple(run)


def _subject(piece: PathPiece, job: TracedJob) -> tuple[object, ...]:
    requests, row = job.requests, piece.request
    step = requests.step_N[row]
    if piece.is_work:
        return (True, step, requests.rank_N[row])
    return (False, step, requests.group_N[row], requests.tag_N[row], requests.operation_N[row])


def _operation(job: TracedJob, piece: PathPiece) -> Operation:
    return Operation(job.requests.operation_N[piece.request])
