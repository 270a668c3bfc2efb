"""A prediction as values: the choice, its shape, time and interval, and NCCL's own time of every candidate."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from fabrictune.collectives.nccl.tuning.candidates import candidates_of
from fabrictune.collectives.nccl.tuning.choice import TUNED
from fabrictune.collectives.nccl.tuning.graphs import Graph
from fabrictune.collectives.nccl.tuning.model import Model
from fabrictune.collectives.nccl.tuning.prediction import Prediction
from fabrictune.foundation.traces import Operation
from fabrictune.foundation.units import PS_PER_US

QPS_PER_CONNECTION = 1  # NCCL_IB_QPS_PER_CONNECTION; data are not split over them (NCCL_IB_SPLIT_DATA_ON_QPS=0)


def facts_of(model: Model) -> dict[str, Any]:
    """Return what the choice depends on, by names."""
    system, graphs = model.system, model.graphs
    return {
        "nccl": model.constants.version,
        "num_hosts": system.num_hosts,
        "num_gpus_per_host": system.gpus_per_host,
        "architecture": f"sm_{system.compute_capability}",
        "nvlink_rate_bps": system.nvlink_rate_bps,
        "num_nics_per_host": system.nics_per_host,
        "nic_rate_bps": system.nic_rate_bps,
        "transport": system.transport.name,
        "num_channels": model.num_channels,
        "num_queue_pairs_per_nic": _queue_pairs(model),
        "graphs": {
            name: _graph(graph)
            for name, graph in (("ring", graphs.ring), ("tree", graphs.tree), ("nvls", graphs.nvls))
            if graph is not None
        },
        "tree_is_balanced": graphs.tree_is_balanced,
        "environment": dict(system.transport.environment),
    }


def row_of(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction with its candidates, times in picoseconds."""
    duration, choice = prediction.duration, prediction.choice
    low, high = prediction.interval_ps
    return {
        "operation": prediction.operation.name.lower(),
        "size_bytes": prediction.size_bytes,
        "choice": prediction.name,
        "reason": choice.reason if choice else "operations of pairs have no algorithm",
        "num_channels": prediction.num_channels,
        "num_threads": choice.shape.num_threads if choice else None,
        "chunk_bytes": choice.shape.chunk_bytes if choice else None,
        "time_ps": prediction.time_ps,
        "low_ps": low,
        "high_ps": high,
        "busbw_bps": prediction.bus_bandwidth_bps,
        "latency_ps": duration.latency_us * PS_PER_US,
        "fill_ps": duration.fill_us * PS_PER_US,
        "transfer_ps": duration.transfer_us * PS_PER_US,
        "bottleneck": duration.bottleneck,
        "candidates": [
            {"name": one.candidate.name, "nccl_ps": one.time_us * PS_PER_US}
            for one in (choice.compared if choice else ())
        ],
    }


def ruled_out(model: Model, operation: Operation) -> dict[str, list[str]]:
    """Return the candidates that cannot run, by reason; those of other operations are left out."""
    if operation not in TUNED:
        return {}
    found: dict[str, list[str]] = {}
    for candidate in candidates_of(model, operation):
        of_simple = candidate.reason == "Simple alone"
        if candidate.reason and candidate.reason != "not of this operation" and not of_simple:
            found.setdefault(candidate.reason, []).append(candidate.name)
    return found


def runs_of(rows: Sequence[Prediction]) -> list[tuple[Prediction, Prediction]]:
    """Return the first and the last size of every run of equal choices."""
    runs = [list(run) for _, run in groupby(rows, key=lambda row: (row.operation, row.name))]
    return [(run[0], run[-1]) for run in runs]


def _queue_pairs(model: Model) -> int:
    """Return the queue pairs of a ring on each NIC: of a connection out and one in for each of its channels."""
    if model.system.num_hosts == 1:
        return 0
    channels = -(-model.num_channels // model.system.nics_per_host)
    return 2 * channels * model.settings.number("qps_per_connection", QPS_PER_CONNECTION)


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "num_channels": graph.num_channels,
        "inside_bytes_per_s": graph.inside * 1e9,
        "between_bytes_per_s": graph.between * 1e9,
    }
