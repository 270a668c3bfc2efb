"""MegaScale's three means against collisions: what can be counted, and what a planner can reach."""

from functools import partial

import numpy as np

from fabrictune.conformance.topology.uplink_sampling import Climb
from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.ecmp.collisions import analyze_collisions
from fabrictune.topology.ecmp.planning.source_ports import plan_source_ports
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.placement import place
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.rank_pairs import neighbour_pairs
from fabrictune.topology.routing import build_network

_PLACEMENT = "MegaScale (NSDI'24) 3.6: a stage of 192 servers is 3 ToR sets of 64, so a ring leaves a set 3 times"
_PORTS = "closed form: 64 flows fill 32 links of twice their rate exactly, if each link gets two"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        Case(
            name="topology.megascale-ring-crossings",
            source=_PLACEMENT,
            unit="steps of a ring that climb",
            **exactly(3),
            run=partial(_crossings, "contiguous"),
        ),
        Case(
            name="topology.megascale-ring-crossings-interleaved",
            source="every neighbour is under another ToR set: all 192 steps climb",
            unit="steps of a ring that climb",
            **exactly(192),
            run=partial(_crossings, "interleaved"),
        ),
        Case(
            name="topology.planned-source-ports-64-on-32",
            source=_PORTS,
            unit="share of offered load",
            **exactly(1.0),
            run=_planned_throughput,
        ),
    )


def _crossings(strategy: str) -> float:
    """Return the climbing steps of each data-parallel ring of the 175B job, which is the same for all 64."""
    layout = ParallelLayout(tp=8, pp=8, dp=192)
    fabric = build_clos(MegascaleSpec())
    placement, pairs = place(layout, fabric, strategy), neighbour_pairs(layout, ("dp",))
    set_R = fabric.node_group_N[placement.host_R]
    climbs_E = set_R[pairs.source_E] != set_R[pairs.destination_E]
    ring_E = layout.coordinates(pairs.source_E)["pp"] * layout.tp + layout.coordinates(pairs.source_E)["tp"]
    crossings = np.unique(np.bincount(ring_E, climbs_E))
    return float(crossings[0]) if len(crossings) == 1 else float("nan")


def _planned_throughput() -> float:
    """Return what two ToRs' flows get once their source ports are planned."""
    climb = Climb(num_nics=64, num_links=32, link_nics=2)
    fabric = climb.fabric()
    nic_Q = np.arange(climb.num_nics)
    network = build_network(fabric, make_queue_pairs(nic_Q, climb.num_nics + nic_Q), HashSpec())
    plan = plan_source_ports(network, HashSpec())
    report = analyze_collisions(build_network(fabric, plan.queue_pairs, HashSpec()))
    return float(report.fair_rates().sum() / report.demand_bps_Q.sum())
