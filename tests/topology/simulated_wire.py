"""A network for `discover` with a clock of its own: a leaf-spine whose hops answer as they are told to.

The topology is fixed: leaf 10.9.0.1, one of four spines 10.9.1.S by the source port, leaf 10.9.2.S, the target. What
becomes of each reply (when it comes, how often, whether at all) is the test's choice.
"""

import heapq
import struct
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address

from fabrictune.topology.probing.packets import Probe
from fabrictune.topology.probing.plan import ProbeFlow

SOURCE = int(IPv4Address("10.0.0.1"))
TARGET = int(IPv4Address("10.0.0.2"))
NUM_SPINES = 4
TIME_EXCEEDED, UNREACHABLE = (11, 0), (3, 3)
FILTERED = (3, 13)
PROMPTLY = (0.001,)

Fate = Callable[[Probe, float], Sequence[float]]  # of a probe sent at a time: the delays of the replies to it


def true_path(flow: ProbeFlow) -> tuple[tuple[int, ...], ...]:
    """Return the hops of a flow in this network."""
    spine = flow.source_port * 7 % 11 % NUM_SPINES
    first = int(IPv4Address("10.9.0.0"))
    return ((first + 1,), (first + 256 + spine,), (first + 512 + spine,), (flow.target_ipv4,))


def icmp(responder: int, message: tuple[int, int], quoted: bytes, *, receiver: int = SOURCE) -> bytes:
    """Return an ICMP datagram about the first 28 bytes of another, as RFC 792 asks for; checksums left 0."""
    content = struct.pack(">BBHI", *message, 0, 0) + quoted[:28]
    return struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(content), 0, 0, 64, 1, 0, responder, receiver) + content


class SimulatedWire:
    """Takes probes, and gives the replies at their time."""

    def __init__(self, fate: Fate = lambda probe, now_s: PROMPTLY, refusing_distance: int = 0) -> None:
        self.fate = fate
        self.refusing_distance = refusing_distance  # at which a hop filters, 0 for none
        self.clock_s = 0.0
        self.sent: list[tuple[float, Probe]] = []
        self._coming: list[tuple[float, bytes]] = []

    def now_s(self) -> float:
        """Return the time."""
        return self.clock_s

    def source_ipv4(self, target_ipv4: int) -> int:
        """Return our address."""
        return SOURCE

    def send(self, datagram: bytes) -> None:
        """Let a probe travel to the hop where it ends."""
        identification, time_to_live = struct.unpack_from(">H2xB", datagram, 4)
        source, target, source_port = struct.unpack_from(">IIH", datagram, 12)
        attempt, distance = divmod(identification, 256)
        assert distance == time_to_live
        probe = Probe(ProbeFlow(source, target, source_port), distance, attempt)
        self.sent.append((self.clock_s, probe))
        path = true_path(probe.flow)
        (responder,) = path[min(distance, len(path)) - 1]
        message = UNREACHABLE if distance >= len(path) else TIME_EXCEEDED
        if self.refusing_distance and distance >= self.refusing_distance:
            (responder,), message = path[self.refusing_distance - 1], FILTERED
        time_to_live_left = max(distance - len(path) + 1, 1)
        quoted = datagram[:8] + bytes([time_to_live_left]) + datagram[9:]
        for delay_s in self.fate(probe, self.clock_s):
            heapq.heappush(self._coming, (self.clock_s + delay_s, icmp(responder, message, quoted)))

    def receive(self, until_s: float) -> Sequence[bytes]:
        """Return the next reply before `until_s`, and move the clock to it."""
        if self._coming and self._coming[0][0] <= max(until_s, self.clock_s):
            time_s, datagram = heapq.heappop(self._coming)
            self.clock_s = max(self.clock_s, time_s)
            return [datagram]
        self.clock_s = max(self.clock_s, until_s)
        return []
