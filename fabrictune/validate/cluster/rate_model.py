"""What flows between NICs of this fabric should get when all run at once, if nobody knows the switches' hash seeds.

Every flow is put on the fabric under SEEDS hash seeds; flows on one link share it max-min fairly, none gets more than
its NIC's payload rate or what its two hosts were measured to carry. The result is a distribution: ECMP collisions are
part of what is expected of this fabric, and only what is below *all* of it is a fault. Without a planned fabric links
between switches are assumed to be no limit.

Shapes: S seeds, F flows, P ports, H hops.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.fairness import max_min_rates
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import data_headers, data_routes
from fabrictune.validate.cluster.nics import Nic

SEEDS = 64
SHARES = 0.8  # of its best rate, below which a flow shares a link
LOW, HIGH = 0.05, 0.95  # of what is shown over seeds

Flow = tuple[Nic, Nic]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A rate as the model has it: its median, 5th and 95th percentile over seeds, and the least of all."""

    least_bps: float
    low_bps: float
    median_bps: float
    high_bps: float


@dataclass(frozen=True, kw_only=True)
class RoundExpectation:
    """What each flow of a round is expected to get, and what all get together."""

    flows: Sequence[Expected]
    total: Expected
    num_sharing: float  # flows that get less than alone, on average over seeds


class RateModel:
    """The model of one cluster. `host_bps` is what each node carries to itself, measured."""

    def __init__(self, fabric: Fabric | None, host_bps: Mapping[str, float]) -> None:
        self._fabric, self._host_bps = fabric, host_bps

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the limits rest on."""
        paths = (
            f"hash seeds of the switches are not known: {SEEDS} were tried, and flows share links max-min fairly"
            if self._fabric
            else "no planned fabric: links between switches are assumed to be no limit (--fabric FILE)"
        )
        return (
            paths,
            "a flow's bytes are its link's rate less headers of IPv4, TCP and Ethernet at the interface's MTU",
            "a host's end of a flow carries what both ends together carried over its loopback",
        )

    def expect(self, flows: Sequence[Flow]) -> RoundExpectation:
        """Return what flows get that run at once."""
        rate_bps_SF = self._rates(flows)
        least_bps = float(rate_bps_SF.min(initial=np.inf))  # of any flow: seeds are exchangeable, and so are ports
        return RoundExpectation(
            flows=[replace(_expected(rate_bps_SF[:, number]), least_bps=least_bps) for number in range(len(flows))],
            total=_expected(rate_bps_SF.sum(axis=1)),
            num_sharing=float((rate_bps_SF < SHARES * rate_bps_SF.max(axis=0)).sum(axis=1).mean()),
        )

    def slowest(self, flows: Sequence[Flow]) -> Expected:
        """Return what the slowest of flows that run at once is expected to get."""
        return _expected(self._rates(flows).min(axis=1, initial=np.inf))

    def demand_bps(self, flow: Flow) -> float:
        """Return what a flow gets that is alone on links as fast as its NICs; infinite where nothing is known."""
        known = [nic.rate_bps * nic.payload_fraction for nic in flow if nic.rate_bps]
        hosts = [self._host_bps[nic.node] for nic in flow if nic.node in self._host_bps]
        return min((*known, *hosts), default=float("inf"))

    def _rates(self, flows: Sequence[Flow]) -> FloatArray:
        demand_bps_F = np.array([self.demand_bps(flow) for flow in flows])
        if self._fabric is None or any(nic.fabric_nic < 0 for flow in flows for nic in flow):
            return self._shared(flows, demand_bps_F)[None, :]
        queue_pairs = make_queue_pairs(*([flow[end].fabric_nic for flow in flows] for end in (0, 1)))
        routes, headers = data_routes(self._fabric, queue_pairs), data_headers(self._fabric, queue_pairs)
        fraction = min(nic.payload_fraction for flow in flows for nic in flow)
        payload_bps_P = self._fabric.port_rate_bps_P * fraction
        return np.array(
            [
                max_min_rates(routes.paths(headers, HashSpec(seed=seed)), payload_bps_P, demand_bps_F)
                for seed in range(SEEDS)
            ]
        )

    @staticmethod
    def _shared(flows: Sequence[Flow], demand_bps_F: FloatArray) -> FloatArray:
        """Return the rates where only NICs are shared."""
        ends = [[flow[0].label + ">" for flow in flows], [">" + flow[1].label for flow in flows]]
        counts = [np.array([side.count(label) for label in side]) for side in ends]
        shared_bps_F: FloatArray = demand_bps_F / np.maximum(*counts)
        return shared_bps_F


def _expected(rate_bps_S: FloatArray) -> Expected:
    return Expected(
        least_bps=float(rate_bps_S.min()),
        low_bps=percentile(rate_bps_S, LOW),
        median_bps=percentile(rate_bps_S, 0.5),
        high_bps=percentile(rate_bps_S, HIGH),
    )
