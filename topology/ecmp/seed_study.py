"""Cost of collisions over hash seeds: one figure each, with its interval.

A switch's hash seed is seldom known, and chance decides who collides; so the same traffic is routed under many seeds of
the fabric and each is measured. Rates are max-min fair, none above what the flow asks for: the queue pairs of a
connection carry equal parts, so one of them cannot make up for another.

Shapes: S seeds, Q queue pairs, K connections.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.progress import Progress
from fabrictune.topology.ecmp.collisions import FULL, CollisionReport, analyze_collisions, find_collisions
from fabrictune.topology.ecmp.estimates import Estimate, estimate_mean, estimate_share, exactly_known
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network, QueuePairs
from fabrictune.topology.routing import data_headers, data_routes


@dataclass(frozen=True, kw_only=True)
class SeedOutcomes:
    """Figures under each of S seeds."""

    worst_load_fraction_S: FloatArray  # demand over rate of the worst link
    throughput_fraction_S: FloatArray  # carried, of the offered load
    slowest_fraction_S: FloatArray  # of what the unluckiest flow asks for
    mean_nic_bps_S: FloatArray  # what a sending NIC sends
    slowest_connection_bps_S: FloatArray  # all queue pairs between two NICs together

    @classmethod
    def of(cls, rows: Sequence[tuple[float, ...]]) -> Self:
        """Return the outcomes of which each row holds one seed's, in the order of the columns."""
        columns = np.array(rows, np.float64).reshape(-1, len(fields(cls))).T
        return cls(**{field.name: column_S for field, column_S in zip(fields(cls), columns, strict=True)})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the seeds of all parts together."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def responses(self) -> dict[str, FloatArray]:
        """Return every figure by its name in Outcome, one value a seed; that of a probability is 0 or 1."""
        measured = {field.name.removesuffix("_S"): getattr(self, field.name) for field in fields(self)}
        return {"overload_probability": self._is_overloaded_S.astype(np.float64), **measured}

    def summary(self) -> "SeedStudyResult":
        """Return the estimates."""
        return SeedStudyResult(
            num_seeds=len(self.worst_load_fraction_S),
            overload_probability=estimate_share(self._is_overloaded_S),
            worst_load_fraction=estimate_mean(self.worst_load_fraction_S, lowest=0.0),
            worst_load_fraction_p99=percentile(self.worst_load_fraction_S, 0.99),
            throughput_fraction=estimate_mean(self.throughput_fraction_S, lowest=0.0, highest=1.0),
            slowest_fraction=estimate_mean(self.slowest_fraction_S, lowest=0.0, highest=1.0),
            mean_nic_bps=estimate_mean(self.mean_nic_bps_S, lowest=0.0),
            slowest_connection_bps=estimate_mean(self.slowest_connection_bps_S, lowest=0.0),
        )

    @property
    def _is_overloaded_S(self) -> BoolArray:
        is_overloaded_S: BoolArray = self.worst_load_fraction_S > FULL
        return is_overloaded_S


@dataclass(frozen=True, kw_only=True)
class SeedStudyResult:
    """Expected figures of a fabric whose seeds are not known."""

    num_seeds: int
    overload_probability: Estimate  # that any link is oversubscribed
    worst_load_fraction: Estimate
    worst_load_fraction_p99: float
    throughput_fraction: Estimate
    slowest_fraction: Estimate
    mean_nic_bps: Estimate
    slowest_connection_bps: Estimate


def measure_network(network: Network) -> SeedStudyResult:
    """Return what collisions cost in a network whose paths are known: every figure without uncertainty."""
    report = analyze_collisions(network)
    measured = SeedOutcomes.of([_measure(report, network.queue_pairs, _connections(network.queue_pairs))]).responses()
    return SeedStudyResult(
        num_seeds=1,
        worst_load_fraction_p99=report.worst_load_fraction,
        **{name: exactly_known(float(value_S[0])) for name, value_S in measured.items()},
    )


def measure_seeds(
    fabric: Fabric,
    queue_pairs: QueuePairs,
    hash_spec: HashSpec,
    seeds: Sequence[int],
    *,
    is_failed_P: BoolArray | None = None,
    progress: Progress | None = None,
) -> SeedOutcomes:
    """Return what collisions cost under each seed of the fabric; raises RouteError where a failure cuts a pair off."""
    routes = data_routes(fabric, queue_pairs, is_failed_P=is_failed_P)
    headers, connection_Q = data_headers(fabric, queue_pairs), _connections(queue_pairs)
    rows = []
    for number, seed in enumerate(seeds, start=1):
        port_QH = routes.paths(headers, replace(hash_spec, seed=seed))
        rows.append(_measure(find_collisions(fabric, queue_pairs, port_QH), queue_pairs, connection_Q))
        if progress:
            progress(number / len(seeds))
    return SeedOutcomes.of(rows)


def _connections(queue_pairs: QueuePairs) -> IntArray:
    """Return a number for each queue pair, the same for those between the same two NICs."""
    ends_2Q = np.stack([queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q])
    return np.unique(ends_2Q, axis=1, return_inverse=True)[1].ravel()


def _measure(report: CollisionReport, queue_pairs: QueuePairs, connection_Q: IntArray) -> tuple[float, ...]:
    """Return a row of SeedOutcomes; a network without traffic loses nothing."""
    if not len(queue_pairs):
        return 0.0, 1.0, 1.0, 0.0, 0.0
    rate_bps_Q = report.fair_rates()
    return (
        report.worst_load_fraction,
        float(rate_bps_Q.sum() / report.demand_bps_Q.sum()),
        float((rate_bps_Q / report.demand_bps_Q).min()),
        float(rate_bps_Q.sum() / len(np.unique(queue_pairs.source_nic_Q))),
        float(np.bincount(connection_Q, rate_bps_Q).min()),
    )
