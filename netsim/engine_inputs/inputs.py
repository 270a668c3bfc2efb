"""What an engine reads, and `lower`, which makes it.

Everything is checked here, once, so that the compiled engine and its Python reference may trust what they get.

Shapes: P ports, Q queue pairs, H entries of a path (its hops and an end mark), N transfers, D dependencies, S probed
ports, F probed queue pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.engine_inputs.capture import capture_settings, captured_flows
from fabrictune.netsim.engine_inputs.epochs import with_epochs
from fabrictune.netsim.engine_inputs.faults import fault_columns
from fabrictune.netsim.engine_inputs.flows import flows
from fabrictune.netsim.engine_inputs.path_choice import path_choice
from fabrictune.netsim.engine_inputs.paths import checked_paths
from fabrictune.netsim.engine_inputs.ports import buffers, check_ports, drain_rates_bps
from fabrictune.netsim.engine_inputs.priorities import pause_patience_ps, priorities
from fabrictune.netsim.engine_inputs.probes import probed_flows, probed_ports
from fabrictune.netsim.engine_inputs.settings import reorder_windows, retransmission_waits, settings
from fabrictune.netsim.engine_inputs.transfers import check_traffic, dependents, nvlink_ends
from fabrictune.netsim.faults.timeline import Spell
from fabrictune.topology.fabric import NO_NIC
from fabrictune.topology.network import Network


@dataclass(frozen=True, kw_only=True)
class EngineInputs:
    """What an engine reads; names and units as in netsim/engine/simulation.hpp."""

    settings: Mapping[str, Any]
    port_rate_bps: IntArray  # P
    port_delay_ps: IntArray  # P
    port_peer: IntArray  # P
    port_is_host: IntArray  # P
    pause_above: IntArray  # P, bytes in the ingress buffer behind the port
    resume_below: IntArray  # P
    ingress_limit: IntArray  # P
    pause_response: IntArray  # P, picoseconds
    drain_rate: IntArray  # P, bits a second at which hosts take what NICs received; 0: at once
    loss_fraction: FloatArray  # P
    path: NDArray[np.uint32]  # Q x 2 x H, flat, and behind them those of later epochs
    path_stride: int  # H
    next_hops: Mapping[str, NDArray[np.uint32]]  # to choose among: netsim/engine_inputs/path_choice.py
    epochs: Mapping[str, NDArray[Any]]  # which paths from when on: netsim/engine_inputs/epochs.py
    faults: Mapping[str, NDArray[Any]]  # what changes at ports: netsim/engine_inputs/faults.py
    priorities: Mapping[str, NDArray[Any]]  # queues and buffers: netsim/engine_inputs/priorities.py
    retransmission_wait: IntArray  # how long until the first sending again, the second, ..., and failure
    reorder_window: IntArray  # Q, picoseconds; empty under go-back-N
    flow: np.ndarray  # Q records of the law, the engine's header filled in
    transfer_medium: IntArray  # N
    transfer_qp: IntArray  # N
    nvlink_source: IntArray  # N, GPU; empty if no transfer takes NVLink
    nvlink_destination: IntArray  # N
    transfer_bytes: IntArray  # N
    transfer_start: IntArray  # N
    transfer_delay: IntArray  # N
    num_dependencies: IntArray  # N
    dependent_offset: IntArray  # N + 1
    dependent_row: IntArray  # D
    probed_port: IntArray  # S
    probed_flow: IntArray  # F
    captured_flow: IntArray  # Q, or none

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name."""
        own = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return {**own, **self.next_hops, **self.epochs, **self.faults, **self.priorities}


def lower(
    network: Network,
    traffic: TrafficTrace,
    law: CompiledLaw,
    config: PacketConfig,
    *,
    seed: int,
    probe: ProbeConfig | None,
    capture: CaptureConfig | None = None,
    faults: tuple[Spell, ...] = (),
) -> EngineInputs:
    """Return the arrays of a run; raises InputError, RouteError or TraceError for what an engine cannot run."""
    fabric = network.fabric
    thresholds = buffers(fabric, config)
    path_QDH = checked_paths(network, uses_telemetry=law.uses_telemetry)
    check_ports(fabric)
    check_traffic(traffic, len(network.queue_pairs), config)
    path, epochs = with_epochs(network, path_QDH)
    dependent_offset, dependent_row = dependents(traffic)
    flow = flows(fabric, path_QDH, law, config)
    return EngineInputs(
        settings={
            **settings(config, seed, probe),
            **capture_settings(fabric, capture),
            "pause_patience_ps": pause_patience_ps(fabric, config),
        },
        port_rate_bps=fabric.port_rate_bps_P,
        port_delay_ps=fabric.port_delay_ps_P,
        port_peer=fabric.port_peer_P,
        port_is_host=(fabric.port_nic_P != NO_NIC).astype(np.int64),
        **thresholds,
        drain_rate=drain_rates_bps(fabric, config),
        loss_fraction=np.full(fabric.num_ports, config.loss_fraction),
        path=path,
        path_stride=path_QDH.shape[2],
        next_hops=path_choice(network, config.path_choice),
        epochs=epochs,
        faults=fault_columns(fabric, faults),
        priorities=priorities(network, config, thresholds),
        retransmission_wait=retransmission_waits(config.transport),
        reorder_window=reorder_windows(flow["base_rtt_ps"], config.transport),
        flow=flow,
        transfer_medium=traffic.medium_N,
        transfer_qp=traffic.qp_N,
        **nvlink_ends(traffic),
        transfer_bytes=traffic.bytes_N,
        transfer_start=traffic.start_ps_N,
        transfer_delay=traffic.delay_ps_N,
        num_dependencies=np.diff(traffic.dependencies.offset_N1),
        dependent_offset=dependent_offset,
        dependent_row=dependent_row,
        probed_port=probed_ports(path_QDH, fabric.num_ports, probe),
        probed_flow=probed_flows(len(network.queue_pairs), probe),
        captured_flow=captured_flows(network, capture),
    )
