"""UDP source ports that spread flows evenly over the next hops of a switch whose choice is learned."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fabrictune.foundation.rocev2 import FIRST_DYNAMIC_PORT
from fabrictune.topology.hash_learning.headers import FlowHeader
from fabrictune.topology.hash_learning.linear_choice import LinearChoice

LIMIT_PORT = 2**16


@dataclass(frozen=True, kw_only=True)
class PlannedPort:
    """A flow with its planned source port."""

    header: FlowHeader
    next_hop: str  # "" where the choice is not known for the flow, which keeps its port


def plan_ports(choice: LinearChoice, headers: Iterable[FlowHeader]) -> tuple[PlannedPort, ...]:
    """Return the flows, each with the lowest source port from 49152 on that takes it to the least loaded next hop.

    A flow whose port is already right keeps it.
    """
    load = Counter(dict.fromkeys(choice.group.next_hops, 0))
    planned = []
    for header in headers:
        best = _port_to(choice, header, sorted(choice.group.next_hops, key=lambda hop: (load[hop], hop)))
        load[best.next_hop] += 1
        planned.append(best)
    return tuple(planned)


def _port_to(choice: LinearChoice, header: FlowHeader, hops: Sequence[str]) -> PlannedPort:
    """Return the flow on the first next hop that one of its ports leads to."""
    first_of: dict[str, FlowHeader] = {}
    for port in (header.source_port, *range(FIRST_DYNAMIC_PORT, LIMIT_PORT)):
        tried = replace(header, source_port=port)
        reached = choice.next_hops_of(tried)
        if len(reached) == 1:
            first_of.setdefault(reached[0], tried)
        if hops[0] in first_of or len(first_of) == len(hops):
            break
    reachable = [hop for hop in hops if hop in first_of]
    if not reachable:
        return PlannedPort(header=header, next_hop="")
    return PlannedPort(header=first_of[reachable[0]], next_hop=reachable[0])
