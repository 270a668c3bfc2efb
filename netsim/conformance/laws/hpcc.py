"""HPCC in the engine: links at 95 % with next to no queue, as its paper has them."""

from functools import cache, partial

import numpy as np

from foundation.cases import Case, around
from foundation.records import RunRecord
from netsim.config.packet import PacketConfig
from netsim.config.probes import ProbeConfig
from netsim.conformance.one_switch import GBPS, run_incast

_PAPER = "Li et al., HPCC, SIGCOMM 2019"
_CONFIG = PacketConfig(mtu_bytes=1000)
_FRAME_BYTES = _CONFIG.with_telemetry().full_frame_bytes
_RATE_BPS = 100 * GBPS
_CABLE_MM = 200_000  # 1 us, as in the paper's fabric


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(
        case
        for senders, message_bytes in ((2, 20_000_000), (16, 4_000_000))
        for case in (
            Case(
                name=f"netsim.hpcc-{senders}-to-1.load",
                source=f"{_PAPER}, section 3.2: flows together keep to eta of the link; all sending, after the start",
                unit="of the link's rate",
                run=partial(load, senders, message_bytes),
                **around(0.95, 0.02),
            ),
            Case(
                name=f"netsim.hpcc-{senders}-to-1.queue",
                source=f"{_PAPER}, section 5: near-zero queues; the same port at the same time, on average",
                unit="packets",
                expected=0.0,
                low=0.0,
                high=3.0,
                run=partial(queue_packets, senders, message_bytes),
                trust="B",
            ),
        )
    )


def load(senders: int, message_bytes: int) -> float:
    """Return the share of the receiver's link that is in use once the first window is past."""
    time_ps_S, tx_bytes_S, _ = _settled(senders, message_bytes)
    seconds = float(time_ps_S[-1] - time_ps_S[0]) / 1e12
    return float(tx_bytes_S[-1] - tx_bytes_S[0]) * 8 / seconds / _RATE_BPS


def queue_packets(senders: int, message_bytes: int) -> float:
    """Return how many packets wait for the receiver's link, on average."""
    _, _, queue_bytes_S = _settled(senders, message_bytes)
    return float(queue_bytes_S.mean()) / _FRAME_BYTES


def _settled(senders: int, message_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time, bytes sent and queue of the receiver's port, from a third of the run to the first finish."""
    tables = _run(senders, message_bytes).tables
    samples, busiest = tables["samples"], int(tables["ports"]["data_packets"].argmax())
    first_finish_ps = int(tables["transfers"]["finish_ps"].min())
    is_settled = (samples["time_ps"] > first_finish_ps // 3) & (samples["time_ps"] < first_finish_ps)
    row_S = np.flatnonzero(is_settled & (samples["port"] == tables["ports"]["port"][busiest]))
    return samples["time_ps"][row_S], samples["tx_bytes"][row_S], samples["queue_bytes"][row_S]


@cache
def _run(senders: int, message_bytes: int) -> RunRecord:
    return run_incast(
        senders,
        message_bytes,
        _RATE_BPS,
        _CONFIG,
        law="hpcc",
        cable_mm=_CABLE_MM,
        probe=ProbeConfig(interval_ns=1_000, ports="all"),
    )
