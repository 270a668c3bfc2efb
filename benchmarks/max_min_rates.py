"""What max-min fair rates cost: one and eight queue pairs for each of the 12,288 NICs of MegaScale's fabric.

Every NIC sends to others of its rail, drawn at random and over hashed paths, so that flows stop at thousands of levels,
which the solver must find in order; a job's rings have far fewer.

Run: `python -m benchmarks.run max_min_rates`
"""

import statistics
import time
from typing import Any

import numpy as np

from fabrictune.foundation.seeds import stream
from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.fairness import max_min_rates
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network

RUNS = 7


def benchmarks() -> list[dict[str, Any]]:
    """Return processor milliseconds a solution, as rows of benchmarks/results.json."""
    return [_row(_network(queue_pairs_per_nic)) for queue_pairs_per_nic in (1, 8)]


def _network(queue_pairs_per_nic: int) -> Network:
    fabric = build_clos(MegascaleSpec())
    source_Q = np.tile(np.arange(fabric.num_nics), queue_pairs_per_nic)
    hosts_away_Q = stream(0, "benchmarks", "max-min").integers(1, MegascaleSpec().num_hosts, len(source_Q))
    destination_Q = (source_Q + hosts_away_Q * MegascaleSpec().nics_per_host) % fabric.num_nics
    return build_network(fabric, make_queue_pairs(source_Q, destination_Q), HashSpec())


def _row(network: Network) -> dict[str, Any]:
    port_QH, capacity_bps_P = network.epochs[0].port_QDH[:, 0], network.fabric.port_rate_bps_P
    num_levels = len(np.unique(max_min_rates(port_QH, capacity_bps_P)))
    values = []
    for _ in range(RUNS):
        started_s = time.process_time()
        max_min_rates(port_QH, capacity_bps_P)
        values.append((time.process_time() - started_s) * 1000)
    return {
        "name": f"topology.max-min-rates.{len(port_QH)}-flows",
        "value": statistics.median(values),
        "unit": "ms",
        "spread": f"median of {RUNS}, {min(values):.2f} to {max(values):.2f}, {num_levels} levels",
    }
