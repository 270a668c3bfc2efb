"""Times of transfers that cross NVLink and no fabric, as an engine has them."""

import numpy as np

from fabrictune.cc.interface import NEVER
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import Medium, TrafficTrace
from fabrictune.netsim import _engine
from fabrictune.netsim.engine_inputs.transfers import nvlink_gpus, transfer_arrays
from fabrictune.netsim.fluid.kernel import MOST_UNCROWDED, run_to_the_end

_ALL_NUMBERS = {"mtu_bytes": 1, "wire_overhead_bytes": 0, "ack_bytes": 1, "ack_every_packets": 1}  # of no packet


def finish_over_nvlink_ps(traffic: TrafficTrace, nvlink_rate_bps: int) -> IntArray:
    """Return when each transfer is finished, shape (N,); none may be on the fabric."""
    assert not (traffic.medium_N == Medium.FABRIC).any(), "transfers inside hosts"
    nothing = np.zeros(0, np.int64)
    fluid = _engine.Fluid(
        path=nothing.astype(np.uint32),
        path_stride=1,
        port_rate_bps=nothing,
        port_delay_ps=nothing,
        **_ALL_NUMBERS,
        nvlink_rate_bps=nvlink_rate_bps,
        time_limit_ps=NEVER,
        num_transfers=len(traffic),
        most_uncrowded=MOST_UNCROWDED,
    )
    fluid.add_transfers(transfer_arrays(traffic, 0, len(traffic), nvlink_gpus(traffic)))
    fluid.start((0.0, 0.0), (0.0, 0.0))
    run_to_the_end(fluid)
    return np.asarray(fluid.transfer_column("finish_ps", 0, len(traffic)))
