"""Link load, in two measures, as a share of each port's rate.

*Offered load* is what the queue pairs hashed onto a link would send if all were active at their NIC's rate; above 100 %
the link is overloaded. *Utilisation* is what a run really carried over the link during the job.

Shapes: P ports.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.units import PS_PER_S
from fabrictune.reports.blocks import listed
from fabrictune.reports.fabric_view import FabricView
from fabrictune.reports.fault_spans import FaultSpan, fault_spans
from fabrictune.reports.record_view import LOADS, PORTS, Run

LoadMeasure = Literal["offered load", "utilisation"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkLoad:
    """Load of every port of one run."""

    label: str  # of the run
    fabric: FabricView
    measure: LoadMeasure
    load_P: FloatArray
    faults: tuple[FaultSpan, ...] = ()  # of the run

    @cached_property
    def fault_of_port(self) -> dict[int, FaultSpan]:
        """The last fault at each port that had any, at both ends of a link."""
        return {
            end: fault
            for fault in self.faults
            for port in fault.ports
            for end in (port, int(self.fabric.port_peer_P[port]))
        }

    def busiest_ports(self) -> IntArray:
        """Return the ports that carry anything, busiest first; of equals those between switches, where ECMP chose."""
        is_elsewhere_P = np.ones(len(self.load_P), bool)
        is_elsewhere_P[self.fabric.compared_ports] = False
        order_P = np.lexsort((is_elsewhere_P, -self.load_P))
        return order_P[self.load_P[order_P] > 0]


def offered_load(run: Run) -> LinkLoad | None:
    """Return demand over rate from the table `loads`, or None where the run has none."""
    loads = run.table(LOADS)
    if run.fabric is None or loads is None:
        return None
    load_P = loads["demand_bps"] / run.fabric.port_rate_bps_P
    return LinkLoad(label=run.label, fabric=run.fabric, measure="offered load", load_P=load_P, faults=fault_spans(run))


def distinct_loads(loads: Sequence[LinkLoad]) -> list[LinkLoad]:
    """Return loads that are the same on fabrics of the same names once, under the labels of all their runs."""
    alike: dict[tuple[object, ...], list[LinkLoad]] = {}
    for load in loads:
        names = load.fabric.node_name_N, load.fabric.port_name_P, load.fabric.port_node_P.tobytes()
        alike.setdefault((load.measure, load.load_P.tobytes(), load.faults, *names), []).append(load)
    return [replace(group[0], label=listed([load.label for load in group])) for group in alike.values()]


def carried_load(run: Run) -> LinkLoad | None:
    """Return bits sent over what the port could have sent during the job, or None where the run has no counts."""
    ports = run.table(PORTS)
    if run.fabric is None or ports is None or not run.span_ps:
        return None
    capacity_bits_P = run.fabric.port_rate_bps_P * (run.span_ps / PS_PER_S)
    load_P = 8 * ports["tx_bytes"] / capacity_bits_P
    return LinkLoad(label=run.label, fabric=run.fabric, measure="utilisation", load_P=load_P, faults=fault_spans(run))
