"""Heat map of a job: each kind of work and request by machine and pipeline place, over what its peers take.

Shapes: R ranks, S steps, J joined requests, M members.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.robust import median_of_rows, over_peers
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.observability.stragglers.diagnosis import Diagnosis
from fabrictune.observability.stragglers.requests import usual_transfer_ns
from fabrictune.observability.stragglers.work import PASSES, waits_for_data_ns


@dataclass(frozen=True, kw_only=True)
class HeatCell:
    """One kind of work of the ranks of a machine at one place of the pipeline."""

    host: str
    place: int
    kind: str  # "forward", or axis and operation of a request
    num_ranks: int
    time_ns: float  # median of a rank's own work in a step, or of a request's transfer
    ratio: float  # over peers; of waits for data 1 and the excess over peers as a share of the step; -1 without peers


def heat_map(diagnosis: Diagnosis) -> tuple[HeatCell, ...]:
    """Return the cells by kind, place and machine; a machine's value is the median of its ranks'."""
    work = diagnosis.work
    cells: list[HeatCell] = []
    for kind in (kind for kind in PASSES if kind in work.own_ns):
        ratio_R = median_of_rows(over_peers(work.own_ns[kind], work.peers_R))
        cells += _cells(diagnosis, kind.name.lower().replace("_", " "), median_of_rows(work.own_ns[kind]), ratio_R)
    if (time_R := waits_for_data_ns(work)) is not None:
        cells += _cells(diagnosis, "data loading", time_R, _excess(time_R, work.peers_R) / diagnosis.step_ns + 1)
    for name, time_R, ratio_R in _requests(diagnosis):
        cells += _cells(diagnosis, name, time_R, ratio_R)
    return tuple(cells)


def _excess(time_R: FloatArray, peers_R: IntArray) -> FloatArray:
    """Return what each rank takes more than the median of its peers; NaN where it has none."""
    excess_R = np.full(len(time_R), np.nan)
    for place in np.unique(peers_R):
        own = np.flatnonzero((peers_R == place) & np.isfinite(time_R))
        if len(own) > 1:
            excess_R[own] = np.maximum(time_R[own] - np.median(time_R[own]), 0.0)
    return excess_R


def _requests(diagnosis: Diagnosis) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    joined = diagnosis.joined
    transfer_J = joined.transfer_ns_J
    usual_J, num_ranks = usual_transfer_ns(joined), len(diagnosis.work.peers_R)
    is_seen_J = joined.is_exposed_J & (usual_J > 0)
    names_J = np.array(
        [f"{axis} {_name(operation)}" for axis, operation in zip(joined.axis_J, joined.operation_J, strict=True)],
        object,
    )
    for name in sorted(set(names_J[is_seen_J].tolist())):
        rows = np.flatnonzero((is_seen_J & (names_J == name))[joined.request_M])
        requests, ranks = joined.request_M[rows], joined.rank_M[rows]
        times, ratios = np.full((2, num_ranks), np.nan)
        order = np.argsort(ranks, kind="stable")
        found, begins = np.unique(ranks[order], return_index=True)
        for rank, own in zip(found.tolist(), np.split(requests[order], begins[1:]), strict=True):
            times[rank] = np.median(transfer_J[own])
            ratios[rank] = np.median(transfer_J[own] / usual_J[own])
        yield name, times, ratios


def _cells(diagnosis: Diagnosis, kind: str, time_R: FloatArray, ratio_R: FloatArray) -> Iterator[HeatCell]:
    hosts = np.array(diagnosis.spans.host_R, object)
    places = diagnosis.work.peers_R
    ranks = np.flatnonzero(np.isfinite(time_R))
    machines: dict[tuple[int, str], list[int]] = {}
    for rank in ranks.tolist():
        machines.setdefault((int(places[rank]), str(hosts[rank])), []).append(rank)
    for (place, host), own in sorted(machines.items()):
        ratios = ratio_R[own][np.isfinite(ratio_R[own])]
        yield HeatCell(
            host=host,
            place=place,
            kind=kind,
            num_ranks=len(own),
            time_ns=float(np.median(time_R[own])),
            ratio=float(np.median(ratios)) if len(ratios) else float(UNKNOWN),
        )


def _name(operation: int) -> str:
    return "message" if operation == Operation.SEND else Operation(operation).name.lower().replace("_", "-")
