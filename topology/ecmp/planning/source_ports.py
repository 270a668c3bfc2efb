"""UDP source ports that spread known flows over a known hash: a local search that never gets worse.

A queue pair's source port is the one header field its owner may choose (`mlx5dv_modify_qp_udp_sport`), so a job that
knows the switches' hash can pick paths. In each round every flow that crosses an overloaded link tries some random
ports, in turn and against the loads at that moment, and takes the one under which the sum over links of excess
squared over rate is least, unless its own is better. Squares make one link loaded to three times its rate worse than
two loaded to twice. A move that changes nothing is made too: it is the way across a plateau.

Left out: the acknowledgements' way back, which the same port decides and whose load is small.

Shapes: Q queue pairs, P ports, H hops, F flows that try, K ports that each tries.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.rocev2 import FIRST_DYNAMIC_PORT
from fabrictune.foundation.seeds import stream
from fabrictune.topology.ecmp.collisions import FULL, CollisionReport, analyze_collisions
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, Network, QueuePairs
from fabrictune.topology.path_tracing import find_paths
from fabrictune.topology.routing import build_network, data_headers

LIMIT_PORT = 2**16
MAX_TRIES = 2**16  # paths looked at in a round, over all flows
MAX_TRIES_PER_FLOW = 256
PATIENCE = 3  # rounds without gain after which the search ends


@dataclass(frozen=True, kw_only=True)
class PortPlan:
    """Proposed source ports, and the course of the search."""

    queue_pairs: QueuePairs  # with the planned source ports
    is_changed_Q: BoolArray
    excess_bps: tuple[float, ...]  # before the search, then after each round; never rises


def plan_source_ports(
    network: Network,
    hash_spec: HashSpec,
    *,
    seed: int = 0,
    num_rounds: int = 20,
    progress: Progress | None = None,
) -> PortPlan:
    """Return source ports from 49152 to 65535 under which the first epoch's flows collide less, or no more."""
    before = queue_pairs = network.queue_pairs
    report = analyze_collisions(network)
    excess_bps = [total_excess(report)]
    for round_ in range(num_rounds):
        row_F = _colliding(network.fabric, report)
        if not len(row_F):
            break
        num_tries = min(MAX_TRIES_PER_FLOW, max(1, MAX_TRIES // len(row_F)))
        draw = stream(seed, "source-ports", round_)
        port_FK = draw.integers(FIRST_DYNAMIC_PORT, LIMIT_PORT, size=(len(row_F), num_tries))
        path_FKH = _paths(network.fabric, queue_pairs, row_F, port_FK, hash_spec)
        source_port_Q = queue_pairs.source_port_Q.copy()
        _move(report, row_F, port_FK, path_FKH, source_port_Q)
        queue_pairs = replace(queue_pairs, source_port_Q=source_port_Q)
        report = analyze_collisions(build_network(network.fabric, queue_pairs, hash_spec))
        excess_bps.append(total_excess(report))
        if progress:
            progress((round_ + 1) / num_rounds)
        if excess_bps[-1] == excess_bps[max(0, len(excess_bps) - 1 - PATIENCE)]:
            break
    return PortPlan(
        queue_pairs=queue_pairs,
        is_changed_Q=queue_pairs.source_port_Q != before.source_port_Q,
        excess_bps=tuple(excess_bps),
    )


def total_excess(report: CollisionReport) -> float:
    """Return the sum over ports of (demand above the rate) squared over the rate, in bps."""
    return float(_excess(report.demand_bps_P, report.rate_bps_P).sum())


def _excess(demand_bps: FloatArray, rate_bps: IntArray) -> FloatArray:
    excess: FloatArray = np.maximum(0.0, demand_bps - rate_bps) ** 2 / rate_bps
    return excess


def _colliding(fabric: Fabric, report: CollisionReport) -> IntArray:
    """Return the queue pairs on overloaded links that another path could avoid, those on the worst first."""
    leads_to_nic_P = fabric.port_nic_P[fabric.port_peer_P] != NO_NIC
    load_P1 = np.append(np.where(leads_to_nic_P, 0.0, report.demand_bps_P / report.rate_bps_P), 0.0)
    worst_Q = load_P1[report.port_QH].max(axis=1, initial=0.0)
    row_F = np.nonzero(worst_Q > FULL)[0]
    return row_F[np.argsort(-worst_Q[row_F], kind="stable")]


def _paths(
    fabric: Fabric, queue_pairs: QueuePairs, row_F: IntArray, port_FK: IntArray, hash_spec: HashSpec
) -> NDArray[np.int32]:
    """Return the path of each flow's data under each port it tries, shape (F, K, H)."""
    row_X = np.repeat(row_F, port_FK.shape[1])
    tried = QueuePairs(**{name: column_Q[row_X] for name, column_Q in vars(queue_pairs).items()})
    headers = data_headers(fabric, replace(tried, source_port_Q=port_FK.ravel()))
    path_XH = find_paths(fabric, tried.source_nic_Q, tried.destination_nic_Q, headers, hash_spec)
    return path_XH.reshape(*port_FK.shape, -1)


def _move(
    report: CollisionReport, row_F: IntArray, port_FK: IntArray, path_FKH: NDArray[np.int32], source_port_Q: IntArray
) -> None:
    """Let one flow after the other take the best of its ports; writes into `source_port_Q`."""
    demand_P1 = np.append(report.demand_bps_P, 0.0)  # the last entry is NO_PORT, whose rate nothing exceeds
    rate_P1 = np.append(report.rate_bps_P, np.iinfo(np.int64).max)
    for row, port_K, path_KH in zip(row_F.tolist(), port_FK, path_FKH, strict=True):
        demand_bps = report.demand_bps_Q[row]
        path_H = report.port_QH[row][report.port_QH[row] != NO_PORT]
        demand_P1[path_H] -= demand_bps
        stay = _added_excess(demand_P1[path_H], rate_P1[path_H], demand_bps).sum()
        added_K = _added_excess(demand_P1[path_KH], rate_P1[path_KH], demand_bps).sum(axis=1)
        best = int(added_K.argmin())
        if added_K[best] <= stay:
            source_port_Q[row] = port_K[best]
            path_H = path_KH[best][path_KH[best] != NO_PORT]
        demand_P1[path_H] += demand_bps


def _added_excess(demand_bps: FloatArray, rate_bps: IntArray, added_bps: float) -> FloatArray:
    return _excess(demand_bps + added_bps, rate_bps) - _excess(demand_bps, rate_bps)
