"""Rates of a job's transfers between hosts, against what a NIC can carry.

A sort of request (axis, operation, size) has the bus bandwidth of nccl-tests: its size times the operation's factor
over the time from the last member's issue to the first end. Where no rank waits for a request, its end is not known and
it is left out. A rank has one NIC here; a ring inside a host crosses no NIC, and such groups are left out.

Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md (bus bandwidth).
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.bounds import bus_factor
from fabrictune.foundation.metrics.formulas import bus_bandwidth_bps
from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.observability.stragglers.requests import JoinedRequests


@dataclass(frozen=True, kw_only=True)
class TransferRate:
    """The requests of one sort between hosts."""

    axis: str
    operation: str
    num_bytes: int
    num_requests: int
    time_ns: int  # median
    rate_bps: float  # bus bandwidth at that time
    share_fraction: float  # of the NIC's rate; UNKNOWN without one


def transfer_rates(
    spans: Spans, joined: JoinedRequests, *, nic_rate_bps: int | None = None
) -> tuple[tuple[TransferRate, ...], int]:
    """Return the rates, the most time in all first, and how many requests were left out."""
    is_seen_J = joined.is_exposed_J & _crosses_hosts(spans, joined) & (joined.transfer_ns_J > 0) & (joined.bytes_J > 0)
    sort_J, rates = joined.sort_J, []
    for sort in np.unique(sort_J[is_seen_J]).tolist():
        rows = np.flatnonzero(is_seen_J & (sort_J == sort))
        first = int(rows[0])
        operation, num_bytes = Operation(int(joined.operation_J[first])), int(joined.bytes_J[first])
        time_ns = round(float(np.median(joined.transfer_ns_J[rows])))
        factor = bus_factor(operation, int(joined.size_J[first]))
        rate_bps = bus_bandwidth_bps(num_bytes, factor, time_ns * PS_PER_NS)
        rates.append(
            TransferRate(
                axis=joined.axis_J[first],
                operation=operation.name.lower().replace("_", "-"),
                num_bytes=num_bytes,
                num_requests=len(rows),
                time_ns=time_ns,
                rate_bps=rate_bps,
                share_fraction=float(UNKNOWN) if nic_rate_bps is None else rate_bps / nic_rate_bps,
            )
        )
    rates.sort(key=lambda rate: (-rate.time_ns * rate.num_requests, rate.axis, rate.operation, rate.num_bytes))
    return tuple(rates), int((~is_seen_J).sum())


def _crosses_hosts(spans: Spans, joined: JoinedRequests) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    host_R = np.unique(spans.host_R, return_inverse=True)[1]
    host_M = host_R[joined.rank_M]
    is_other_M = host_M != host_M[joined.first_J][joined.request_M] if len(host_M) else np.zeros(0, bool)
    crosses_J = np.zeros(joined.num_requests, bool)
    crosses_J[joined.request_M[is_other_M]] = True
    return crosses_J
