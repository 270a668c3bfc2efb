"""What collisions cost over the seeds a fabric may have: one figure each, with its interval.

A switch's hash seed is seldom known, and chance decides who collides; so the same traffic is routed under many seeds of
the fabric and each is measured. Rates are max-min fair, none above what the flow asks for: the queue pairs of a
connection carry equal parts, so one of them cannot make up for another.

Shapes: S seeds, Q queue pairs, K connections.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from topology.collisions import CollisionReport, analyze_collisions
from topology.estimates import Estimate, estimate_mean, estimate_share
from topology.fabric import Fabric
from topology.hashing import HashSpec
from topology.network import QueuePairs
from topology.routing import build_network

FULL = 1 + 1e-9  # load up to which a link is not overloaded


@dataclass(frozen=True, kw_only=True)
class SeedOutcomes:
    """What was measured under each of S seeds."""

    worst_load_fraction_S: NDArray[np.float64]  # demand over rate of the worst link
    throughput_fraction_S: NDArray[np.float64]  # of all that is asked for
    slowest_fraction_S: NDArray[np.float64]  # of what the unluckiest flow asks for
    mean_nic_bps_S: NDArray[np.float64]  # what a sending NIC sends
    slowest_connection_bps_S: NDArray[np.float64]  # all queue pairs between two NICs together

    def summary(self) -> "Outcome":
        """Return the estimates."""
        return Outcome(
            num_seeds=len(self.worst_load_fraction_S),
            overload_probability=estimate_share(self.worst_load_fraction_S > FULL),
            worst_load_fraction=estimate_mean(self.worst_load_fraction_S),
            worst_load_fraction_p99=float(np.quantile(self.worst_load_fraction_S, 0.99)),
            throughput_fraction=estimate_mean(self.throughput_fraction_S),
            slowest_fraction=estimate_mean(self.slowest_fraction_S),
            mean_nic_bps=estimate_mean(self.mean_nic_bps_S),
            slowest_connection_bps=estimate_mean(self.slowest_connection_bps_S),
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What to expect of a fabric whose seeds are not known."""

    num_seeds: int
    overload_probability: Estimate  # that any link is asked for more than it carries
    worst_load_fraction: Estimate
    worst_load_fraction_p99: float
    throughput_fraction: Estimate
    slowest_fraction: Estimate
    mean_nic_bps: Estimate
    slowest_connection_bps: Estimate


def measure_seeds(
    fabric: Fabric,
    queue_pairs: QueuePairs,
    hash_spec: HashSpec,
    seeds: Sequence[int],
    progress: Callable[[float], None] | None = None,
) -> SeedOutcomes:
    """Return what collisions cost under each seed of the fabric; raises RouteError."""
    connection_Q = np.unique(
        np.stack([queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q]), axis=1, return_inverse=True
    )[1].ravel()
    num_senders = len(np.unique(queue_pairs.source_nic_Q))
    rows = []
    for number, seed in enumerate(seeds, start=1):
        network = build_network(fabric, queue_pairs, replace(hash_spec, seed=seed))
        rows.append(_measure(analyze_collisions(network), connection_Q, num_senders))
        if progress:
            progress(number / len(seeds))
    columns = np.array(rows, np.float64).reshape(-1, len(fields(SeedOutcomes))).T
    return SeedOutcomes(**{field.name: column for field, column in zip(fields(SeedOutcomes), columns, strict=True)})


def _measure(report: CollisionReport, connection_Q: NDArray[np.int64], num_senders: int) -> tuple[float, ...]:
    """Return a row of SeedOutcomes; a network without traffic loses nothing."""
    if not len(connection_Q):
        return 0.0, 1.0, 1.0, 0.0, 0.0
    rate_bps_Q = report.fair_rates()
    return (
        report.worst_load_fraction,
        float(rate_bps_Q.sum() / report.demand_bps_Q.sum()),
        float((rate_bps_Q / report.demand_bps_Q).min()),
        float(rate_bps_Q.sum() / num_senders),
        float(np.bincount(connection_Q, rate_bps_Q).min()),
    )
