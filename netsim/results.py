"""Tables of a run's record."""

import numpy as np

from fabrictune.foundation.metrics.transfers import slowdowns
from fabrictune.foundation.records import Columns
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.ideal import ideal_times_ps
from fabrictune.topology.files import fabric_table
from fabrictune.topology.network import Network


def tables(
    network: Network, traffic: TrafficTrace, simulation: _engine.Simulation, config: PacketConfig
) -> dict[str, Columns]:
    """Return the tables of foundation/run_tables/simulation.py; `queues` only where ports have priorities."""
    got = simulation.transfer_columns()
    ideal_ps_N = ideal_times_ps(network, traffic, config)
    slowdown_N = slowdowns({**got, "ideal_ps": ideal_ps_N})
    queues = simulation.queue_columns()
    numbers = np.array(config.queues.numbers, np.int64)
    ports = {"port": np.arange(network.fabric.num_ports), **simulation.port_columns()}
    return {
        "fabric": fabric_table(network.fabric),
        "transfers": {
            "transfer": np.arange(len(traffic)),
            "qp": traffic.qp_N,
            "source": traffic.source_N,
            "destination": traffic.destination_N,
            "bytes": traffic.bytes_N,
            "operation": traffic.operation_N,
            **got,
            "ideal_ps": ideal_ps_N,
            "slowdown": np.where(np.isfinite(slowdown_N), slowdown_N, np.nan),
        },
        "ports": ports,
        "aborts": dict(simulation.failure_columns()),
        **({"queues": {**queues, "priority": numbers[queues["priority"]]}} if len(numbers) else {}),
        "samples": dict(simulation.port_sample_columns()),
        "flow_samples": dict(simulation.flow_sample_columns()),
    }
