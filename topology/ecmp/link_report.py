"""Flows of one link, and the choices of the hash that brought each there.

A flow's path is listed hop by hop: which of how many equal-cost ports the hash chose. Where a hop had one choice, no
seed and no source port would have changed it. Ranks and rails identify the flows; numbers of queue pairs and source
ports are what `rdma resource show qp` and a capture show of the same flow.

Shapes: Q queue pairs, C NICs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabrictune.topology.ecmp.collisions import CollisionReport
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import NO_PORT, Network
from fabrictune.topology.placement import Placement
from fabrictune.topology.routing import EqualCost

NO_PLACEMENTS: Mapping[str, Placement] = {}


@dataclass(frozen=True, kw_only=True)
class HopChoice:
    """One hop of a flow: the port it leaves through, number `choice` of `num_choices` that are equally near."""

    port: str  # node:port
    choice: int
    num_choices: int


@dataclass(frozen=True, kw_only=True)
class FlowOnLink:
    """A flow that crosses a link."""

    queue_pair: int
    source: str  # host:port
    destination: str
    part: str  # of a mixture of traffic, "" for one kind alone
    source_ranks: Sequence[int]  # of the part, that use the NIC; empty where no placement is known
    destination_ranks: Sequence[int]
    source_rail: int  # NO_RAIL where unknown
    destination_rail: int
    source_qpn: int
    destination_qpn: int
    source_port: int  # UDP
    demand_bps: float
    rate_bps: float  # what max-min fairness leaves it
    hops: Sequence[HopChoice]


@dataclass(frozen=True, kw_only=True)
class LinkExplanation:
    """One direction of a link, and the flows that cross it."""

    link: str
    rate_bps: int
    demand_bps: float
    flows: Sequence[FlowOnLink]  # in the order of their queue pairs
    notes: tuple[str, ...] = ()  # what the network and its traffic assume

    @property
    def load_fraction(self) -> float:
        """Demand over rate."""
        return self.demand_bps / self.rate_bps


def explain_link(
    network: Network,
    report: CollisionReport,
    port: int,
    *,
    placements: Mapping[str, Placement] = NO_PLACEMENTS,
    part_Q: Sequence[str] | None = None,
    epoch: int = 0,
) -> LinkExplanation:
    """Return what crosses a port in the direction of the data.

    `part_Q` names the part of a mixture that each queue pair belongs to; without it all are of the part "". Ranks are
    named of the parts whose placement is known.
    """
    fabric, queue_pairs = network.fabric, network.queue_pairs
    ranks_of_part = {part: _ranks_of_nic(placement) for part, placement in placements.items()}
    rate_bps_Q = report.fair_rates()
    equal_cost = EqualCost(fabric)
    flows = []
    for row in report.queue_pairs_on(port).tolist():
        source, destination = int(queue_pairs.source_nic_Q[row]), int(queue_pairs.destination_nic_Q[row])
        part = "" if part_Q is None else part_Q[row]
        ranks_of_nic = ranks_of_part.get(part, {})
        path = [hop for hop in network.epochs[epoch].port_QDH[row, 0].tolist() if hop != NO_PORT]
        flows.append(
            FlowOnLink(
                queue_pair=row,
                source=fabric.nic_label(source),
                destination=fabric.nic_label(destination),
                part=part,
                source_ranks=ranks_of_nic.get(source, ()),
                destination_ranks=ranks_of_nic.get(destination, ()),
                source_rail=int(fabric.nic_rail_C[source]),
                destination_rail=int(fabric.nic_rail_C[destination]),
                source_qpn=int(queue_pairs.source_qpn_Q[row]),
                destination_qpn=int(queue_pairs.destination_qpn_Q[row]),
                source_port=int(queue_pairs.source_port_Q[row]),
                demand_bps=float(report.demand_bps_Q[row]),
                rate_bps=float(rate_bps_Q[row]),
                hops=tuple(_hops(fabric, equal_cost, path, destination)),
            )
        )
    return LinkExplanation(
        link=fabric.link_label(port),
        rate_bps=int(report.rate_bps_P[port]),
        demand_bps=float(report.demand_bps_P[port]),
        flows=tuple(flows),
    )


def _ranks_of_nic(placement: Placement) -> Mapping[int, tuple[int, ...]]:
    ranks: dict[int, tuple[int, ...]] = {}
    for rank, nic in enumerate(placement.nic_R.tolist()):
        ranks[nic] = (*ranks.get(nic, ()), rank)
    return ranks


def _hops(fabric: Fabric, equal_cost: EqualCost, path: Sequence[int], destination_nic: int) -> Iterable[HopChoice]:
    """Give the choices of a path's switches; the host's own, where its NIC has two ports, is its driver's."""
    for port in path[1:]:
        choices = equal_cost.ports(int(fabric.port_node_P[port]), destination_nic)
        yield HopChoice(port=fabric.port_label(port), choice=choices.index(port), num_choices=len(choices))
