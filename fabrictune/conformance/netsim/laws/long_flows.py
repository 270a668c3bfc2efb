"""Long flows from a few hosts to one, under one switch, watched once they have settled.

The compiler is imported when a case runs, so that listing the cases is quick; each law is compiled once, since its
parameters are read from their record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from fabrictune.cc.interface import CompiledLaw
from fabrictune.conformance.netsim.one_switch import HOST_CABLE_MM, one_switch
from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.metrics.formulas import jain_fairness_index
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig

NUM_SAMPLES = 200  # over the time that is watched
_ENOUGH_BYTES = 10**12  # no flow ends


@dataclass(frozen=True, kw_only=True)
class Settled:
    """Figures from the time of settling on. F flows."""

    goodput_bps_F: FloatArray  # acknowledged, headers of the packets included
    mean_rtt_us: float
    mean_queue_bytes: float  # in front of the receiver
    max_queue_bytes: float
    lost_fraction: float  # of all data packets, from the start on
    num_pauses: int

    @property
    def goodput_gbps(self) -> float:
        """Total goodput of all flows."""
        return float(self.goodput_bps_F.sum()) / 1e9

    @property
    def fairness(self) -> float:
        """Jain's index."""
        return jain_fairness_index(self.goodput_bps_F)


def watch(
    law: str,
    config: PacketConfig,
    *,
    senders: int,
    flows_each: int = 1,
    rate_bps: int,
    settle_us: int,
    watch_us: int,
    settings: Sequence[tuple[str, float]] = (),
    start_us: Sequence[int] = (0,),
    cable_mm: int = HOST_CABLE_MM,
) -> Settled:
    """Return the settled figures of flows that start at `start_us`; its last entry applies to all further flows."""
    record = _run(
        law,
        replace(config, time_limit_ns=(settle_us + watch_us) * 1000),
        ProbeConfig(interval_ns=watch_us * 1000 // NUM_SAMPLES, all_flows=True, num_busiest=1),
        start_ps_N=_starts(start_us, senders * flows_each),
        source_N=1 + np.arange(senders * flows_each) % senders,
        rate_bps=rate_bps,
        settings=settings,
        cable_mm=cable_mm,
    )
    on_wire = config.with_telemetry() if compiled(law).uses_telemetry else config
    return _look(record, on_wire, settle_ps=settle_us * 10**6)


@cache
def compiled(law: str) -> CompiledLaw:
    """Return a law of the project with its defaults."""
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law

    return compile_law(load_law(law))


def law_with_settings(law: str, settings: Sequence[tuple[str, float]]) -> CompiledLaw:
    """Return a law of the project with other parameters."""
    from fabrictune.cc.flow_state import params_record
    from fabrictune.cc.laws import load_law

    return replace(compiled(law), params=params_record(load_law(law), dict(settings)))


def _starts(start_us: Sequence[int], num_flows: int) -> IntArray:
    first_us = np.array(start_us, np.int64)
    return np.concatenate([first_us, np.full(num_flows - len(first_us), first_us[-1])]) * 10**6


def _run(
    law: str,
    config: PacketConfig,
    probe: ProbeConfig,
    *,
    start_ps_N: IntArray,
    source_N: IntArray,
    rate_bps: int,
    settings: Sequence[tuple[str, float]],
    cable_mm: int,
) -> RunRecord:
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    pairs, traffic = one_message_each(source_N, np.zeros_like(source_N), _ENOUGH_BYTES, start_ps_N=start_ps_N)
    network = build_network(one_switch(int(source_N.max()) + 1, rate_bps, cable_mm), pairs, HashSpec())
    return run(network, traffic, law_with_settings(law, settings), config, probe=probe)


def goodputs_bps(record: RunRecord, settle_ps: int, packet_bytes: int) -> FloatArray:
    """Return what was acknowledged of each flow from `settle_ps` on, all of which were sampled, shape (F,)."""
    flows = record.tables["flow_samples"]
    num_flows = len(record.tables["transfers"]["transfer"])
    is_watched = flows["time_ps"] >= settle_ps
    acknowledged_SF = flows["acknowledged_packets"][is_watched].reshape(-1, num_flows)  # S samples
    elapsed_s = float(np.ptp(flows["time_ps"][is_watched])) / 1e12
    goodput_bps_F: FloatArray = (acknowledged_SF[-1] - acknowledged_SF[0]) * packet_bytes * 8 / elapsed_s
    return goodput_bps_F


def _look(record: RunRecord, config: PacketConfig, *, settle_ps: int) -> Settled:
    flows, ports = record.tables["flow_samples"], record.tables["samples"]
    is_watched = flows["time_ps"] >= settle_ps
    queue_bytes_S = ports["queue_bytes"][ports["time_ps"] >= settle_ps]
    packets = record.run["packets"]
    return Settled(
        goodput_bps_F=goodputs_bps(record, settle_ps, config.full_frame_bytes),
        mean_rtt_us=float(flows["rtt_ps"][is_watched].mean()) / 1e6,
        mean_queue_bytes=float(queue_bytes_S.mean()),
        max_queue_bytes=float(queue_bytes_S.max()),
        lost_fraction=packets["dropped"] / max(packets["data_sent"], 1),
        num_pauses=int(record.tables["ports"]["pauses"].sum()),
    )
