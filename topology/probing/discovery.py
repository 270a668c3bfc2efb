"""Discovery of paths: order and pace of the probes of a plan, distance by distance, without clock or socket.

All flows are probed for their first hop, then those that have not arrived for the second, and so on. What does not
answer is asked again, each time more slowly. Both come through a `ProbeSocket`, so the whole of it runs against a
simulated network as well as against raw sockets.
"""

from collections.abc import Sequence
from typing import Protocol

from fabrictune.foundation.progress import Progress
from fabrictune.topology.probing.observations import Observations
from fabrictune.topology.probing.packets import Probe, pack_probe, parse_reply
from fabrictune.topology.probing.plan import ProbeFlow, ProbePlan


class ProbeSocket(Protocol):
    """A network, and a clock that suits it."""

    def now_s(self) -> float:
        """Return the time."""

    def source_ipv4(self, target_ipv4: int) -> int:
        """Return the address that packets to the target leave with."""

    def send(self, datagram: bytes) -> None:
        """Send an IPv4 datagram to the address in it."""

    def receive(self, until_s: float) -> Sequence[bytes]:
        """Return ICMP datagrams as soon as there are any, none at `until_s`; what is there comes even after it."""


def discover(plan: ProbePlan, wire: ProbeSocket, progress: Progress | None = None) -> "Discovery":
    """Probe as planned; `progress` receives the share done, at most."""
    discovery = Discovery(plan, wire)
    while discovery.seen.distance < plan.max_hops and discovery.seen.advance():
        for attempt in range(plan.attempts):
            if discovery.seen.is_complete:
                break
            discovery.ask(attempt)
            if progress:
                progress((discovery.seen.distance - 1 + (attempt + 1) / plan.attempts) / plan.max_hops)
    return discovery


class Discovery:
    """A probing under way, or done: what was sent and what was seen."""

    def __init__(self, plan: ProbePlan, wire: ProbeSocket) -> None:
        self.plan = plan
        self.wire = wire
        self.num_probes = 0
        self.seen = Observations(
            [
                ProbeFlow(source, target, source_port)
                for target in plan.targets
                for source in (wire.source_ipv4(target),)
                for source_port in plan.source_ports
            ]
        )
        self.started_s = self.ended_s = self.next_s = wire.now_s()

    @property
    def duration_s(self) -> float:
        """Time from the start to the end of the last round."""
        return self.ended_s - self.started_s

    def ask(self, attempt: int) -> None:
        """Probe every flow that has not answered at this distance, and wait for the replies."""
        self.next_s = max(self.next_s, self.wire.now_s())
        unanswered = self.seen.unanswered()
        interval_s = self.plan.interval_s(attempt, len(unanswered))
        for flow in unanswered:
            self._listen(self.next_s)
            self._send(Probe(flow, self.seen.distance, attempt))
            # A late timer delays one probe and not all that follow, but lost time is not made up in a burst.
            self.next_s = max(self.next_s + interval_s, self.wire.now_s())
        deadline_s = self.wire.now_s() + self.plan.timeout_s
        while not self.seen.is_complete and self.wire.now_s() < deadline_s:
            self._hear(deadline_s)
        self.ended_s = self.wire.now_s()

    def _send(self, probe: Probe) -> None:
        self.wire.send(pack_probe(probe, dscp=self.plan.dscp, destination_qpn=self.plan.destination_qpn))
        self.num_probes += 1

    def _listen(self, until_s: float) -> None:
        """Take what has come, and what comes until then."""
        self._hear(until_s)
        while self.wire.now_s() < until_s:
            self._hear(until_s)

    def _hear(self, until_s: float) -> None:
        for datagram in self.wire.receive(until_s):
            reply = parse_reply(datagram)
            if reply is not None:
                self.seen.add(reply)
