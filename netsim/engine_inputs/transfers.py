"""The transfers of a trace: checked against the network, and their dependencies turned round.

Shapes: N transfers, D dependencies.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import Medium, TrafficTrace
from fabrictune.foundation.units import PS_PER_S
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.limits import LAST_INSTANT_PS, PATH_END


def check_traffic(traffic: TrafficTrace, num_pairs: int, config: PacketConfig) -> None:
    """Raise TraceError for transfers the network or the engine cannot carry."""
    on_fabric_N = traffic.medium_N == Medium.FABRIC
    if (traffic.qp_N[on_fabric_N] >= num_pairs).any():
        row = int(np.nonzero(on_fabric_N & (traffic.qp_N >= num_pairs))[0][0])
        raise TraceError(
            Mistake(
                where=f"traffic trace, row {row}",
                found=f"queue pair {int(traffic.qp_N[row])}",
                allowed=f"a row of the network's {num_pairs} queue pairs",
            )
        )
    packets_N = np.maximum(1, -(-traffic.bytes_N[on_fabric_N] // config.mtu_bytes)).astype(np.float64)
    packets_Q = np.bincount(traffic.qp_N[on_fabric_N], weights=packets_N, minlength=1)
    if packets_Q.max() >= PATH_END or len(traffic) >= PATH_END:
        raise TraceError(
            Mistake(
                where="traffic trace", found=f"{packets_Q.max():.3g} packets of one queue pair", allowed="2**32 - 2"
            )
        )

    _check_times(traffic, config)


def _check_times(traffic: TrafficTrace, config: PacketConfig) -> None:
    """Raise TraceError for a transfer that starts, waits, or takes over NVLink, beyond the engine's clock."""
    nvlink_s_N = np.where(traffic.medium_N == Medium.NVLINK, 8.0 * traffic.bytes_N / config.nvlink_rate_bps, 0.0)
    columns = {"start": traffic.start_ps_N, "delay": traffic.delay_ps_N, "time over NVLink": nvlink_s_N * PS_PER_S}
    for what, time_ps_N in columns.items():
        late_N = time_ps_N > LAST_INSTANT_PS
        if late_N.any():
            row = int(late_N.argmax())
            raise TraceError(
                Mistake(
                    where=f"traffic trace, row {row}",
                    found=f"a {what} of {int(time_ps_N[row])} ps ({int(late_N.sum())} such transfers)",
                    allowed=f"up to {LAST_INSTANT_PS} ps, 53 days",
                )
            )


def transfer_arrays(traffic: TrafficTrace) -> dict[str, NDArray[Any]]:
    """Return the arrays of transfers and their dependencies."""
    dependent_offset, dependent_row = _dependents(traffic)
    return {
        "transfer_medium": traffic.medium_N,
        "transfer_qp": traffic.qp_N,
        **_nvlink_ends(traffic),
        "transfer_bytes": traffic.bytes_N,
        "transfer_start": traffic.start_ps_N,
        "transfer_delay": traffic.delay_ps_N,
        "num_dependencies": np.diff(traffic.dependencies.offset_N1),
        "dependent_offset": dependent_offset,
        "dependent_row": dependent_row,
    }


def _dependents(traffic: TrafficTrace) -> tuple[IntArray, IntArray]:
    """Return the transfers that wait for each transfer: the trace's dependencies turned round, in row order."""
    offset_N1, row_D = traffic.dependencies.offset_N1, traffic.dependencies.row_D
    waiting_D = np.repeat(np.arange(len(traffic)), np.diff(offset_N1))
    order_D = np.argsort(row_D, kind="stable")
    counts_N = np.bincount(row_D, minlength=len(traffic))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts_N)]).astype(np.int64), waiting_D[order_D]


def _nvlink_ends(traffic: TrafficTrace) -> dict[str, IntArray]:
    """Return the GPUs at the ends of each transfer over NVLink, numbered anew from 0; no rows where none takes it."""
    on_nvlink_N = traffic.medium_N == Medium.NVLINK
    ends_2N = np.zeros((2, len(traffic) if on_nvlink_N.any() else 0), np.int64)
    if on_nvlink_N.any():
        gpus = np.stack([traffic.source_N, traffic.destination_N])[:, on_nvlink_N]
        ends_2N[:, on_nvlink_N] = np.unique(gpus, return_inverse=True)[1].reshape(gpus.shape)
    return {"nvlink_source": ends_2N[0].copy(), "nvlink_destination": ends_2N[1].copy()}
