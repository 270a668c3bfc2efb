"""The transfers of a trace: checked against the network, and as the engine's arrays, a range of rows at a time.

Shapes: N transfers of a range, Q queue pairs, G GPUs, D dependencies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.traces import UNKNOWN, Medium, TrafficTrace
from fabrictune.foundation.units import PS_PER_S
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.limits import LAST_INSTANT_PS, PATH_END

MOST_COUNTED = 2**20  # numbers of GPUs


@dataclass(frozen=True, kw_only=True)
class TrafficTotals:
    """Sums over all transfers of a trace."""

    num_bytes: int  # over any medium
    num_dependencies: int
    bytes_Q: FloatArray  # over the fabric; whole numbers
    packets_Q: FloatArray
    last_start_ps: int
    largest_bytes: int  # of one transfer over the fabric


def check_traffic(traffic: TrafficTrace, num_pairs: int, config: PacketConfig) -> TrafficTotals:
    """Return the sums of a trace; raises TraceError for transfers the network or the engine cannot carry."""
    bytes_Q, packets_Q = np.zeros((2, num_pairs))
    num_bytes = num_dependencies = last_start_ps = largest_bytes = 0
    for begin, end in ranges(0, len(traffic)):
        qp_N, bytes_N, medium_N = (traffic.column(name, begin, end) for name in ("qp_N", "bytes_N", "medium_N"))
        on_fabric_N = medium_N == Medium.FABRIC
        _check_pairs(np.where(on_fabric_N, qp_N, UNKNOWN), num_pairs, begin)
        last_start_ps = max(last_start_ps, _check_times(traffic, begin, end, config, medium_N, bytes_N))
        packets_N = np.maximum(1, -(-bytes_N[on_fabric_N] // config.mtu_bytes)).astype(np.float64)
        bytes_Q += np.bincount(qp_N[on_fabric_N], weights=bytes_N[on_fabric_N], minlength=num_pairs)
        packets_Q += np.bincount(qp_N[on_fabric_N], weights=packets_N, minlength=num_pairs)
        num_bytes += int(bytes_N.sum())
        largest_bytes = max(largest_bytes, int(bytes_N[on_fabric_N].max(initial=0)))
        num_dependencies += len(traffic.waits(begin, end).row_D)
    if packets_Q.max(initial=0) >= PATH_END or len(traffic) >= PATH_END or num_dependencies >= PATH_END:
        raise TraceError(Mistake(where="traffic trace", **_too_many(traffic, packets_Q, num_dependencies)))
    return TrafficTotals(
        num_bytes=num_bytes,
        num_dependencies=num_dependencies,
        bytes_Q=bytes_Q,
        packets_Q=packets_Q,
        last_start_ps=last_start_ps,
        largest_bytes=largest_bytes,
    )


def _too_many(traffic: TrafficTrace, packets_Q: FloatArray, num_dependencies: int) -> dict[str, str]:
    if len(traffic) >= PATH_END:
        found = f"{len(traffic):.3g} transfers"
    elif num_dependencies >= PATH_END:
        found = f"{num_dependencies:.3g} dependencies"
    else:
        found = f"{packets_Q.max():.3g} packets of one queue pair"
    return {"found": found, "allowed": "2**32 - 2"}


def _check_pairs(qp_N: IntArray, num_pairs: int, begin: int) -> None:
    """Raise TraceError for a queue pair that the network does not have; `begin` is the first row's number."""
    is_foreign_N = qp_N >= num_pairs
    if is_foreign_N.any():
        row = int(is_foreign_N.argmax())
        raise TraceError(
            Mistake(
                where=f"traffic trace, row {begin + row}",
                found=f"queue pair {int(qp_N[row])}",
                allowed=f"a row of the network's {num_pairs} queue pairs",
            )
        )


def _check_times(
    traffic: TrafficTrace, begin: int, end: int, config: PacketConfig, medium_N: IntArray, bytes_N: IntArray
) -> int:
    """Return the last start; raises TraceError for a start, wait or time over NVLink beyond the engine's clock."""
    start_ps_N = traffic.column("start_ps_N", begin, end)
    takes_nvlink_N = (medium_N == Medium.NVLINK) | (traffic.column("relayed_to_N", begin, end) != UNKNOWN)
    nvlink_s_N = np.where(takes_nvlink_N, 8.0 * bytes_N / config.nvlink_rate_bps, 0.0)
    delay_ps_N = traffic.column("delay_ps_N", begin, end)
    columns = {"start": start_ps_N, "delay": delay_ps_N, "time over NVLink": nvlink_s_N * PS_PER_S}
    for what, time_ps_N in columns.items():
        late_N = time_ps_N > LAST_INSTANT_PS
        if late_N.any():
            row = int(late_N.argmax())
            raise TraceError(
                Mistake(
                    where=f"traffic trace, row {begin + row}",
                    found=f"a {what} of {int(time_ps_N[row])} ps ({int(late_N.sum())} such transfers)",
                    allowed=f"up to {LAST_INSTANT_PS} ps, 53 days",
                )
            )
    return int(start_ps_N.max(initial=0))


def transfer_arrays(traffic: TrafficTrace, begin: int, end: int, gpu_G: IntArray) -> dict[str, NDArray[Any]]:
    """Return the engine's arrays of rows `begin` to `end` - 1; `gpu_G` is what `nvlink_gpus` returns."""
    waits = traffic.waits(begin, end)
    medium_N = traffic.column("medium_N", begin, end)
    return {
        "transfer_medium": medium_N,
        "transfer_qp": traffic.column("qp_N", begin, end),
        "transfer_bytes": traffic.column("bytes_N", begin, end),
        "transfer_start": traffic.column("start_ps_N", begin, end),
        "transfer_delay": traffic.column("delay_ps_N", begin, end),
        "num_dependencies": np.diff(waits.offset_N1),
        "dependency_row": waits.row_D,
        **{name: _numbered(gpu_N, gpu_G) for name, gpu_N in _nvlink_ends(traffic, begin, end).items()},
    }


def join_transfers(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all transfers, those of each range one after another."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def nvlink_gpus(traffic: TrafficTrace) -> IntArray:
    """Return the GPUs whose NVLink some transfer takes, in order, shape (G,)."""
    gpu_G = np.zeros(0, np.int64)
    for begin, end in ranges(0, len(traffic)):
        ends = [gpu_N[gpu_N != UNKNOWN] for gpu_N in _nvlink_ends(traffic, begin, end).values()]
        gpu_G = np.union1d(gpu_G, _distinct(np.concatenate(ends)))
    return gpu_G


def _distinct(gpu_N: IntArray) -> IntArray:
    """Return the GPUs among some in order, by counting where their numbers are low."""
    is_low = gpu_N.max(initial=0) < max(len(gpu_N), MOST_COUNTED)
    return np.flatnonzero(np.bincount(gpu_N)) if is_low else np.unique(gpu_N)


def _nvlink_ends(traffic: TrafficTrace, begin: int, end: int) -> dict[str, IntArray]:
    """Return between which GPUs each transfer takes NVLink, all its way or to its NIC; UNKNOWN off NVLink."""
    on_nvlink_N = traffic.column("medium_N", begin, end) == Medium.NVLINK
    ends = {"nvlink_source": ("source_N", "relayed_from_N"), "nvlink_destination": ("destination_N", "relayed_to_N")}
    return {
        name: np.where(on_nvlink_N, *(traffic.column(column, begin, end) for column in columns))
        for name, columns in ends.items()
    }


def _numbered(gpu_N: IntArray, gpu_G: IntArray) -> IntArray:
    """Return GPUs numbered anew from 0; no rows where no transfer takes NVLink."""
    if not len(gpu_G):
        return np.zeros(0, np.int64)
    return np.where(gpu_N == UNKNOWN, UNKNOWN, np.searchsorted(gpu_G, gpu_N)).astype(np.int64)
