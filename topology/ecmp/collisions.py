"""ECMP collisions: links oversubscribed by the hash, the flows that share them, and their cost.

Every queue pair is taken to be active at once, those of one NIC sharing its rate: the moment in which all transfers of
a ring run. A NIC of several ports has the rate of all of them, a queue pair that of one at most. Where the demand on a
link exceeds its rate, its flows get a share in proportion; a flow's expected throughput is its share at its worst link.
No flow takes up what another loses elsewhere, so among flows that ask for
equal amounts the figure is a lower bound on the max-min fair rate, and equal to it where each has one bottleneck.
`fair_rates` gives that rate itself: what an ideal congestion control would come to rest at, in bits a second.

Shapes: Q queue pairs, P ports, H hops, L overloaded links.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.checks import CheckReport, run_check
from fabrictune.foundation.finding_rules.paths import LINK_OVERLOADED, RECEIVER_OVERLOADED
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import Columns, Confidence, Finding, Severity
from fabrictune.foundation.units import format_fraction, format_rate
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.fairness import max_min_rates
from fabrictune.topology.network import NO_PORT, Network, QueuePairs

MAX_SHOWN_FLOWS = 8
FULL = 1 + 1e-9  # load up to which a link is not overloaded: a full one is not, by a rounding error


@dataclass(frozen=True, kw_only=True)
class CollisionReport:
    """The load of every port in the direction of the data, and what it leaves each queue pair."""

    num_flows_P: IntArray
    demand_bps_Q: FloatArray  # the queue pair's share of its NIC
    demand_bps_P: FloatArray
    rate_bps_P: IntArray
    port_QH: NDArray[np.int32]  # the paths of the data
    throughput_fraction_Q: FloatArray  # of the queue pair's demand

    @property
    def overloaded_ports(self) -> IntArray:
        """Oversubscribed ports, the worst first, ties in port order; shape (L,)."""
        return self.ports_above(1.0)

    def ports_above(self, load_fraction: float) -> IntArray:
        """Return the ports with a higher demand over rate, the worst first, ties in port order."""
        ratio_P = self.demand_bps_P / self.rate_bps_P
        above: IntArray = np.nonzero(ratio_P > load_fraction * FULL)[0]
        return above[np.argsort(-ratio_P[above], kind="stable")]

    @property
    def mean_throughput_fraction(self) -> float:
        """Mean over queue pairs; 1.0 where there is none."""
        return float(self.throughput_fraction_Q.mean()) if len(self.throughput_fraction_Q) else 1.0

    @property
    def worst_load_fraction(self) -> float:
        """Demand over rate of the worst port; 0.0 without traffic."""
        return float((self.demand_bps_P / self.rate_bps_P).max(initial=0.0))

    def fair_rates(self) -> FloatArray:
        """Return each queue pair's max-min fair rate in bps, shape (Q,), none above its demand."""
        return max_min_rates(self.port_QH, self.rate_bps_P, self.demand_bps_Q)

    def queue_pairs_on(self, port: int) -> IntArray:
        """Return the queue pairs whose data leave through a port."""
        return np.nonzero((self.port_QH == port).any(axis=1))[0]

    def tables(self) -> dict[str, Columns]:
        """Return the tables of a run record: a row per loaded port, per collision, and per queue pair."""
        loaded = np.nonzero(self.num_flows_P)[0]
        port, queue_pair = self._queue_pairs_on(self.overloaded_ports)
        return {
            "loads": {
                "port": loaded,
                "flows": self.num_flows_P[loaded],
                "demand_bps": np.rint(self.demand_bps_P[loaded]).astype(np.int64),
                "rate_bps": self.rate_bps_P[loaded],
            },
            "collisions": {"port": port, "qp": queue_pair},
            "throughput": {
                "qp": np.arange(len(self.throughput_fraction_Q)),
                "throughput_fraction": self.throughput_fraction_Q,
                "fair_rate_bps": np.rint(self.fair_rates()).astype(np.int64),
            },
        }

    def check_links(
        self,
        fabric: Fabric,
        queue_pairs: QueuePairs,
        rules: RuleSettings = CATALOG_SETTINGS,
        *,
        part_Q: Sequence[str] | None = None,
    ) -> CheckReport:
        """Return the check of links to switches: a finding for each overloaded one, the worst first.

        `part_Q` names the part of the traffic that each queue pair belongs to, where there are several.
        """
        judge = _Judge(rule=LINK_OVERLOADED, rules=rules, fabric=fabric, queue_pairs=queue_pairs, part_Q=part_Q)
        return self._check(judge, ~_is_to_nic(fabric), "switches")

    def check_receivers(
        self,
        fabric: Fabric,
        queue_pairs: QueuePairs,
        rules: RuleSettings = CATALOG_SETTINGS,
        *,
        is_declared_Q: BoolArray | None = None,
        part_Q: Sequence[str] | None = None,
    ) -> CheckReport:
        """Return the check of links to NICs, where no choice of path helps: findings as of other links.

        `is_declared_Q` are the queue pairs of an incast that somebody asked for: they alone make no error.
        """
        judge = _Judge(
            rule=RECEIVER_OVERLOADED,
            rules=rules,
            fabric=fabric,
            queue_pairs=queue_pairs,
            part_Q=part_Q,
            declared_bps_Q=None if is_declared_Q is None else np.where(is_declared_Q, self.demand_bps_Q, 0.0),
        )
        return self._check(judge, _is_to_nic(fabric), "NICs")

    def _check(self, judge: "_Judge", is_own_P: BoolArray, what: str) -> CheckReport:
        above = self.ports_above(judge.load)
        port_X, queue_pair_X = self._queue_pairs_on(above)
        overloaded = [port for port in above.tolist() if is_own_P[port]]
        first, end = (np.searchsorted(port_X, overloaded, side=side) for side in ("left", "right"))
        rows = (queue_pair_X[begin:end] for begin, end in zip(first.tolist(), end.tolist(), strict=True))
        load_P = np.where(is_own_P, self.demand_bps_P / self.rate_bps_P, 0.0)
        return run_check(
            judge.rule.id,
            f"{int((is_own_P & (self.num_flows_P > 0)).sum()):,} loaded link directions to {what}",
            (
                judge.finding(port, own, float(self.demand_bps_P[port]), float(self.rate_bps_P[port]))
                for port, own in zip(overloaded, rows, strict=True)
            ),
            expected=f"at most {format_fraction(judge.load)} offered with all queue pairs sending at once",
            actual=f"highest {format_fraction(float(load_P.max(initial=0.0)))}",
        )

    def _queue_pairs_on(self, ports: IntArray) -> tuple[IntArray, IntArray]:
        """Return a row for each of these ports and each queue pair on it, by port and then queue pair."""
        queue_pair, hop = np.nonzero(np.isin(self.port_QH, ports))
        port = self.port_QH[queue_pair, hop].astype(np.int64)
        order = np.lexsort((queue_pair, port))
        return port[order], queue_pair[order]


@dataclass(frozen=True, kw_only=True)
class _Judge:
    """A rule with its site's thresholds, and what its findings name."""

    rule: Rule
    rules: RuleSettings
    fabric: Fabric
    queue_pairs: QueuePairs
    part_Q: Sequence[str] | None = None  # names, where the traffic has parts
    declared_bps_Q: FloatArray | None = None  # what queue pairs of a declared incast offer

    @property
    def load(self) -> float:
        """Offered load over rate above which there is a finding."""
        return self.rules.threshold(self.rule, "load")

    def finding(self, port: int, rows: IntArray, demand_bps: float, rate_bps: float) -> Finding:
        """Return the finding of a port that these queue pairs cross."""
        fabric, queue_pairs = self.fabric, self.queue_pairs
        shown = [
            f"queue pair {row}{self._of_part(row)}: {fabric.nic_label(int(queue_pairs.source_nic_Q[row]))} to "
            f"{fabric.nic_label(int(queue_pairs.destination_nic_Q[row]))}"
            for row in rows[:MAX_SHOWN_FLOWS].tolist()
        ]
        if len(rows) > MAX_SHOWN_FLOWS:
            shown.append(f"and {len(rows) - MAX_SHOWN_FLOWS:,} more queue pairs")
        of_rate = "" if self.load == 1 else f", {format_fraction(self.load)} of its rate"
        declared_bps_X = np.zeros(len(rows)) if self.declared_bps_Q is None else self.declared_bps_Q[rows]
        num_declared = np.count_nonzero(declared_bps_X)
        of_incast = f", {num_declared:,} of them of a declared incast" if num_declared else ""
        other_bps = demand_bps - float(declared_bps_X.sum())
        is_error = other_bps >= self.rules.threshold(self.rule, "error_load") * rate_bps
        return self.rule.finding(
            severity=Severity.ERROR if is_error else Severity.WARNING,
            entity=fabric.link_label(port),
            expected=f"at most {format_rate(self.load * rate_bps)}{of_rate}",
            actual=f"{len(rows):,} flows{self._by_part(rows)} offer {format_rate(demand_bps)}{of_incast}",
            confidence=Confidence.PREDICTED,
            evidence=tuple(shown),
        )

    def _of_part(self, row: int) -> str:
        return f" of {self.part_Q[row]}" if self.part_Q else ""

    def _by_part(self, rows: IntArray) -> str:
        """Return how many of the queue pairs each part has, the most first: ` (a: 3, b: 1)`."""
        if not self.part_Q:
            return ""
        counts = Counter(self.part_Q[row] for row in rows.tolist()).most_common()
        more = f", and {len(counts) - MAX_SHOWN_FLOWS} more" if len(counts) > MAX_SHOWN_FLOWS else ""
        return f" ({', '.join(f'{part}: {count:,}' for part, count in counts[:MAX_SHOWN_FLOWS])}{more})"


def analyze_collisions(network: Network, *, epoch: int = 0) -> CollisionReport:
    """Return the load of every port and the expected throughput of every queue pair in one routing epoch."""
    return find_collisions(network.fabric, network.queue_pairs, network.epochs[epoch].port_QDH[:, 0, :])


def find_collisions(fabric: Fabric, queue_pairs: QueuePairs, port_QH: NDArray[np.int32]) -> CollisionReport:
    """Return the same for queue pairs whose data take the paths `port_QH`."""
    demand_bps_Q = _demand(fabric, queue_pairs, port_QH)
    has_port_QH = port_QH != NO_PORT
    port_X = port_QH[has_port_QH]
    demand_bps_X = np.broadcast_to(demand_bps_Q[:, None], port_QH.shape)[has_port_QH]
    demand_bps_P = np.bincount(port_X, demand_bps_X, minlength=fabric.num_ports).astype(np.float64)
    share_P1 = np.ones(fabric.num_ports + 1)  # the last entry is NO_PORT
    share_P1[:-1] = fabric.port_rate_bps_P / np.maximum(fabric.port_rate_bps_P, demand_bps_P)
    return CollisionReport(
        num_flows_P=np.bincount(port_X, minlength=fabric.num_ports),
        demand_bps_Q=demand_bps_Q,
        demand_bps_P=demand_bps_P,
        rate_bps_P=fabric.port_rate_bps_P,
        port_QH=port_QH,
        throughput_fraction_Q=share_P1[port_QH].min(axis=1),
    )


def _is_to_nic(fabric: Fabric) -> BoolArray:
    """Return for each port whether its link leads to a NIC."""
    is_to_nic_P: BoolArray = fabric.port_nic_P[fabric.port_peer_P] != NO_NIC
    return is_to_nic_P


def _demand(fabric: Fabric, queue_pairs: QueuePairs, port_QH: NDArray[np.int32]) -> FloatArray:
    """Return what each queue pair asks for: its part of its NIC's whole rate, and at most its own port's."""
    num_pairs_C = np.bincount(queue_pairs.source_nic_Q, minlength=fabric.num_nics)
    of_nic = fabric.port_nic_P != NO_NIC
    rate_bps_C = np.bincount(fabric.port_nic_P[of_nic], fabric.port_rate_bps_P[of_nic], minlength=fabric.num_nics)
    fair_bps_Q = rate_bps_C[queue_pairs.source_nic_Q] / num_pairs_C[queue_pairs.source_nic_Q]
    demand_bps_Q: FloatArray = np.minimum(fabric.port_rate_bps_P[port_QH[:, 0]], fair_bps_Q)
    return demand_bps_Q
