"""Barre in the engine: the queue and the throughput it comes to rest at, for flows of 400 Gb/s as in its paper."""

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from cc.barre_fluid import BarreFluid, stable_queue_bytes
from foundation.cases import Case, around
from foundation.records import RunRecord
from netsim.config.packet import PacketConfig
from netsim.config.probes import ProbeConfig
from netsim.config.switch import EcnConfig
from netsim.config.transport import CnpConfig
from netsim.conformance.one_switch import FULL_FRAME_BYTES, GBPS, run_incast

_PAPER = "Barre, USENIX ATC 2025"
_RATE_BPS = 400 * GBPS
_CABLE_MM = 200_000
_RTT_PS = 4_200_000  # four cables of 1 us, two full frames and two acknowledgements
_ECN = EcnConfig(kmin_bytes=100_000, kmax_bytes=3_200_000, pmax_fraction=0.2)
_CONFIG = PacketConfig(ecn=_ECN, cnp=CnpConfig(interval_ns=1_000))
_MESSAGE_BYTES = 40_000_000


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_stable_queue(8), *(_throughput(num_flows) for num_flows in (8, 16)))


def _stable_queue(num_flows: int) -> Iterator[Case]:
    queue_bytes = stable_queue_bytes(
        BarreFluid(
            num_flows=num_flows,
            capacity_bps=_RATE_BPS,
            packet_bytes=FULL_FRAME_BYTES,
            rtt_ps=_RTT_PS,
            kmin_bytes=_ECN.kmin_bytes,
            kmax_bytes=_ECN.kmax_bytes,
            pmax_fraction=_ECN.pmax_fraction,
        )
    )
    assert queue_bytes is not None
    yield Case(
        name=f"netsim.barre-stable-queue.{num_flows}-flows",
        source="cc/barre_fluid.py, which knows no delay of feedback; here queue and wires delay it",
        unit="KB",
        run=partial(_queue_kb, num_flows),
        **around(queue_bytes / 1e3, 0.1),
        trust="B",
    )


def _throughput(num_flows: int) -> Case:
    return Case(
        name=f"netsim.barre-incast.{num_flows}-flows",
        source=f"{_PAPER}, appendix A.3: incasts of 16 to 4,096 flows fill 390 to 400 of 400 Gb/s",
        unit="Gb/s",
        expected=395.0,
        low=390.0,
        high=400.1,  # a frame begun is counted whole
        run=partial(_settled_gbps, num_flows),
        trust="C",
    )


def _queue_kb(num_flows: int) -> float:
    _, _, queue_bytes_S = _settled(num_flows)
    return float(queue_bytes_S.mean()) / 1e3


def _settled_gbps(num_flows: int) -> float:
    time_ps_S, tx_bytes_S, _ = _settled(num_flows)
    return float(tx_bytes_S[-1] - tx_bytes_S[0]) * 8e3 / float(time_ps_S[-1] - time_ps_S[0])


def _settled(num_flows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time, bytes sent and queue of the receiver's port, from a third of the run to the first finish."""
    tables = _run(num_flows).tables
    samples, busiest = tables["samples"], int(tables["ports"]["data_packets"].argmax())
    first_finish_ps = int(tables["transfers"]["finish_ps"].min())
    is_settled = (samples["time_ps"] > first_finish_ps // 3) & (samples["time_ps"] < first_finish_ps)
    row_S = np.flatnonzero(is_settled & (samples["port"] == tables["ports"]["port"][busiest]))
    return samples["time_ps"][row_S], samples["tx_bytes"][row_S], samples["queue_bytes"][row_S]


@cache
def _run(num_flows: int) -> RunRecord:
    return run_incast(
        num_flows,
        _MESSAGE_BYTES,
        _RATE_BPS,
        _CONFIG,
        law="barre",
        cable_mm=_CABLE_MM,
        probe=ProbeConfig(interval_ns=1_000, ports="all"),
    )
