"""EngineInputs, and `make_engine_inputs`, which makes them.

Everything is checked here, once, so that the compiled engine and its Python reference may trust what they get.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.engine_inputs.capture import (
    capture_settings,
    captured_flows,
    check_captured_messages,
    check_captured_packets,
)
from fabrictune.netsim.engine_inputs.epochs import with_epochs
from fabrictune.netsim.engine_inputs.faults import fault_arrays
from fabrictune.netsim.engine_inputs.flows import credit_windows_bytes, make_flow_records
from fabrictune.netsim.engine_inputs.host_links import host_links
from fabrictune.netsim.engine_inputs.path_choice import path_choice
from fabrictune.netsim.engine_inputs.paths import checked_paths
from fabrictune.netsim.engine_inputs.ports import port_arrays
from fabrictune.netsim.engine_inputs.priorities import pause_patience_ps, priorities
from fabrictune.netsim.engine_inputs.probes import probed_flows, probed_ports
from fabrictune.netsim.engine_inputs.search import not_searched, packet_hops
from fabrictune.netsim.engine_inputs.settings import reorder_windows, retransmission_waits, settings
from fabrictune.netsim.engine_inputs.transfers import (
    TrafficTotals,
    check_traffic,
    join_transfers,
    nvlink_gpus,
    transfer_arrays,
)
from fabrictune.netsim.faults.timeline import FaultInterval
from fabrictune.topology.network import Network


@dataclass(frozen=True, kw_only=True)
class EngineInputs:
    """Inputs of an engine: settings, arrays as items, and transfers; all have exactly the names that the engine lists.

    Meanings, units and shapes: settings.inl, arrays.inl and transfer_arrays.inl in netsim/engine/state.
    """

    settings: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    traffic: TrafficTrace
    totals: TrafficTotals
    not_searched: str = ""  # why exact skip looks for nothing that repeats; "" where it does, or is not asked to

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def transfers(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the arrays of all transfers, a range of rows at a time."""
        gpus = nvlink_gpus(self.traffic)
        for begin, end in ranges(0, len(self.traffic)):
            yield transfer_arrays(self.traffic, begin, end, gpus)

    def all_transfers(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of all transfers, written out."""
        if not len(self.traffic):
            return transfer_arrays(self.traffic, 0, 0, nvlink_gpus(self.traffic))
        return join_transfers(list(self.transfers()))


def make_engine_inputs(
    network: Network,
    traffic: TrafficTrace,
    law: CompiledLaw,
    config: PacketConfig,
    *,
    seed: int,
    probe: ProbeConfig | None,
    capture: CaptureConfig | None = None,
    faults: tuple[FaultInterval, ...] = (),
) -> EngineInputs:
    """Return the arrays of a run; raises InputError, RouteError or TraceError for what an engine cannot run."""
    fabric = network.fabric
    ports = port_arrays(fabric, config)
    path_QDH = checked_paths(network, uses_telemetry=law.uses_telemetry)
    totals = check_traffic(traffic, len(network.queue_pairs), config)
    check_captured_messages(totals.largest_bytes, capture)
    check_captured_packets(config, law, capture)
    path, epochs = with_epochs(network, path_QDH)
    flow = make_flow_records(fabric, path_QDH, law, config, drain_rate_P=ports["drain_rate"])
    unsearched = not_searched(config, packet_hops(totals.packets_Q, flow["num_hops"], config.ack_every_packets))
    return EngineInputs(
        settings={
            **settings(config, seed, probe),
            "skips_repeats": config.skip != "off" and not unsearched,
            **capture_settings(fabric, capture),
            "pause_patience_ps": pause_patience_ps(fabric, config),
            "num_transfers": len(traffic),
            "path_stride": path_QDH.shape[2],
            "flow_bytes": flow.dtype.itemsize,
        },
        arrays={
            **ports,
            **host_links(fabric, config.host),
            "path": path,
            **path_choice(network, config.path_choice),
            **epochs,
            **fault_arrays(fabric, faults),
            **priorities(network, config, ports),
            "retransmission_wait": retransmission_waits(config.transport),
            "reorder_window": reorder_windows(flow["base_rtt_ps"], config.transport),
            "credit_window": credit_windows_bytes(flow, config),
            "flow": flow,
            "probed_port": probed_ports(path_QDH, fabric.num_ports, probe),
            "probed_flow": probed_flows(len(network.queue_pairs), probe),
            "captured_flow": captured_flows(network, capture),
        },
        traffic=traffic,
        totals=totals,
        not_searched=unsearched,
    )
