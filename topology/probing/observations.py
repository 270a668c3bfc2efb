"""Observations: replies by flow and hop, and the flows that are still to be probed.

Replies may come out of order, twice, late or never: the paths follow from the set of replies alone. A hop that gave no
answer is unknown and stays so; nothing is filled in from other flows.
"""

from collections.abc import Sequence
from enum import StrEnum

from fabrictune.topology.probing.packets import Reply, ReplyKind
from fabrictune.topology.probing.plan import ProbeFlow

SILENT_HOPS = 3  # hops in a row without an answer after which a flow is asked no further

Hop = tuple[int, ...]  # IPv4 addresses that answered at one distance: none is unknown, several is a path that changed


class Ending(StrEnum):
    """Reason why nothing is known beyond the last hop."""

    ARRIVED = "arrived"  # the target answered
    REFUSED = "refused"  # the last hop said that it goes no further
    SILENT = "silent"  # nothing answers any more: the target, or a hop before it
    CUT = "cut"  # the furthest distance probed


class Observations:
    """The replies to probes of one distance after another."""

    def __init__(self, flows: Sequence[ProbeFlow]) -> None:
        self.flows = tuple(flows)
        self.distance = 0  # being probed
        self.num_replies = 0
        self._responders: dict[ProbeFlow, dict[int, set[int]]] = {flow: {} for flow in flows}
        self._end: dict[ProbeFlow, tuple[int, ReplyKind]] = {}
        self._waiting: set[ProbeFlow] = set()

    def advance(self) -> bool:
        """Ask one hop further; return whether any flow is left to ask for."""
        self.distance += 1
        self._waiting = {flow for flow in self.flows if flow not in self._end and not self._has_gone_silent(flow)}
        return bool(self._waiting)

    def add(self, reply: Reply) -> None:
        """Take a reply, unless it is about a probe that was never sent."""
        flow = reply.probe.flow
        if flow not in self._responders or reply.probe.distance > self.distance:
            return
        self.num_replies += 1
        self._responders[flow].setdefault(reply.distance, set()).add(reply.responder_ipv4)
        if reply.kind is not ReplyKind.EXPIRED and (flow not in self._end or reply.distance < self._end[flow][0]):
            self._end[flow] = (reply.distance, reply.kind)
        if reply.distance == self.distance or flow in self._end:
            self._waiting.discard(flow)

    @property
    def is_complete(self) -> bool:
        """Whether every flow asked at this distance has answered."""
        return not self._waiting

    def unanswered(self) -> list[ProbeFlow]:
        """Return the flows that have not answered at this distance, in their order."""
        return [flow for flow in self.flows if flow in self._waiting]

    def path(self, flow: ProbeFlow) -> tuple[tuple[Hop, ...], Ending]:
        """Return the flow's hops up to the last that answered, and why they end there."""
        heard = self._responders[flow]
        if flow in self._end:
            length, kind = self._end[flow]
            ending = Ending.ARRIVED if kind is ReplyKind.ARRIVED else Ending.REFUSED
        else:
            length = max(heard, default=0)
            ending = Ending.CUT if length and length == self.distance else Ending.SILENT
        return tuple(tuple(sorted(heard.get(distance, ()))) for distance in range(1, length + 1)), ending

    def _has_gone_silent(self, flow: ProbeFlow) -> bool:
        return self.distance - 1 - max(self._responders[flow], default=0) >= SILENT_HOPS
