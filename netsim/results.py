"""Tables of a run's record."""

from collections.abc import Collection, Mapping
from functools import partial

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.generated_tables import GeneratedTable, MakeColumn
from fabrictune.foundation.metrics.transfers import slowdowns
from fabrictune.foundation.records import Columns
from fabrictune.foundation.row_ranges import CHUNK_ROWS
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.ideal import IdealTimes
from fabrictune.topology.files import fabric_table
from fabrictune.topology.network import Network


def tables(
    network: Network, traffic: TrafficTrace, simulation: _engine.Simulation, config: PacketConfig
) -> dict[str, Columns]:
    """Return the tables of foundation/run_tables/simulation.py; `queues` only where ports have priorities."""
    queues = simulation.queue_columns()
    numbers = np.array(config.queues.numbers, np.int64)
    ports = {"port": np.arange(network.fabric.num_ports), **simulation.port_columns()}
    return {
        "fabric": fabric_table(network.fabric),
        "transfers": transfers_table(network, traffic, simulation, config),
        "ports": ports,
        "aborts": dict(simulation.failure_columns()),
        **({"queues": {**queues, "priority": numbers[queues["priority"]]}} if len(numbers) else {}),
        "samples": dict(simulation.port_sample_columns()),
        "flow_samples": dict(simulation.flow_sample_columns()),
    }


def transfers_table(
    network: Network,
    traffic: TrafficTrace,
    simulation: _engine.Simulation | _engine.Fluid,
    config: PacketConfig,
    *,
    without: Collection[str] = (),
) -> Columns:
    """Return the table of transfers, less some columns.

    Beyond CHUNK_ROWS it is generated as it is read, from simulation and traffic.
    """
    columns = _transfer_columns(traffic, simulation, IdealTimes(network, config))
    transfers = GeneratedTable(len(traffic), {name: columns[name] for name in columns if name not in without})
    return dict(transfers) if len(traffic) <= CHUNK_ROWS else transfers


def _transfer_columns(
    traffic: TrafficTrace, simulation: _engine.Simulation | _engine.Fluid, ideal: IdealTimes
) -> Mapping[str, MakeColumn]:
    def ideal_ps(begin: int, end: int) -> IntArray:
        return ideal.of(traffic.column("qp_N", begin, end), traffic.column("bytes_N", begin, end))

    def slowdown(begin: int, end: int) -> FloatArray:
        times = {name: simulation.transfer_column(name, begin, end) for name in ("ready_ps", "finish_ps")}
        slowdown_N = slowdowns({**times, "ideal_ps": ideal_ps(begin, end)})
        return np.where(np.isfinite(slowdown_N), slowdown_N, np.nan)

    traced = ("qp", "source", "destination", "bytes", "operation")
    return {
        "transfer": lambda begin, end: np.arange(begin, end),
        **{name: partial(traffic.column, f"{name}_N") for name in traced},
        **{name: partial(simulation.transfer_column, name) for name in sorted(simulation.transfer_column_names())},
        "ideal_ps": ideal_ps,
        "slowdown": slowdown,
    }
