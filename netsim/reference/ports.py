"""Packets, ports and their queues.

A port has a queue for each priority. Without priorities it has two: one of data, which pauses stop, and one of control
packets, which goes first.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.engine_inputs.limits import NO_PRIORITY
from fabrictune.netsim.reference.port_loads import LoadMeter
from fabrictune.netsim.reference.run import QUALITY, RandomStream, RunState

PORT_COLUMNS = (
    "tx_bytes",
    "tx_packets",
    "data_packets",
    "dropped_packets",
    "ecn_marked_packets",
    "pauses",
    "paused_ps",
    "max_queue_bytes",
)
QUEUE_COLUMNS = (
    "tx_bytes",
    "tx_packets",
    "ecn_marked_packets",
    "dropped_packets",
    "max_queue_bytes",
    "pauses",
    "paused_ps",
    "pause_frames_sent",
    "pause_frames_received",
    "pause_storms",
)
LOSS_CAUSES = ("link_down", "no_route", "bit_error")
PS_BITS_PER_BYTE = 8 * 10**12
DATA, CONTROL = range(2)  # queues of a port without priorities


@dataclass(eq=False)
class Packet:
    """A packet queued or in flight."""

    kind: str  # data, ack, nak, cnp, rnr, trimmed (data without payload), trim-nack, credit, credit-request
    pair: int
    sequence: int  # of its own, of what a cumulative answer is about, or of what a selective one answers
    wire_bytes: int
    sent_ps: int
    path: list[int]  # ports still to leave through, where they are fixed
    priority: int  # its queue at every port
    ingress: "Port | None" = None  # through which it came to the node it is in
    is_marked: bool = False
    expected: int = 0  # of a selective acknowledgement: everything below has arrived
    reported: frozenset[int] = frozenset()  # of a coalesced acknowledgement: what else has arrived
    wants_ack: bool = False  # of a data packet: none follows before an acknowledgement
    arrived_ps: int = 0  # of a data packet at its destination
    endpoint_ps: int = 0  # of an answer: how long the packet answered was in the host
    is_last_hop: bool = False  # of a trimmed packet and its answer: it was trimmed before the port to its host
    entropy: int = 0  # value by which switches choose; an answer has that of the packet answered
    credit_bytes: int = 0  # count up to which credit is wanted, or granted
    departure: int = 0  # how often the wire it is on had been down
    telemetry: list[tuple[int, int, int, float]] = field(default_factory=list)  # one record of each port on its way

    @property
    def is_forward(self) -> bool:
        """Whether it goes from the sender to the receiver."""
        return self.kind in ("data", "trimmed", "credit-request")


@dataclass
class PauseTimer:
    """State of a pause, with counts of pauses and their time."""

    counts: dict[str, int]
    is_on: bool = False
    since_ps: int = 0

    def begin(self, now_ps: int) -> None:
        """Pause."""
        self.is_on, self.since_ps = True, now_ps
        self.counts["pauses"] += 1

    def end(self, now_ps: int) -> None:
        """Resume."""
        self.is_on = False
        self.counts["paused_ps"] += now_ps - self.since_ps

    def settle(self, now_ps: int) -> None:
        """Count the time until now."""
        if self.is_on:
            self.counts["paused_ps"] += now_ps - self.since_ps
            self.since_ps = now_ps


class OutputQueue:
    """One priority's queue at a port, and what a watchdog knows of it."""

    def __init__(
        self, weight: int, marking: tuple[int, int, float], *, drops_early: bool = False, is_counted: bool = True
    ) -> None:
        self.weight = weight  # 0: strict
        self.marking = marking
        self.drops_early = drops_early  # what would be marked and is not ECN-capable
        self.is_counted = is_counted  # whether its bytes are part of the port's queue
        self.packets: deque[Packet] = deque()
        self.ring: deque[Callable[[], None]] = deque()  # Sender.take_turn of the queue pairs that wait
        self.queued_bytes = 0
        self.balance_bytes = 0  # what it may still send in its turn
        self.counts = dict.fromkeys(QUEUE_COLUMNS, 0)
        self.pause = PauseTimer(self.counts)
        self.pause_ends_ps = NEVER
        self.last_pause_ps = 0
        self.look_ps = NEVER  # when the watchdog looks at it
        self.is_storm = False
        self.ignores_pause = False

    @property
    def is_open(self) -> bool:
        """Whether its packets may be sent."""
        return not self.pause.is_on or self.ignores_pause

    @property
    def is_sendable(self) -> bool:
        """Whether something waits in it that may be sent."""
        return bool(self.packets or self.ring) and self.is_open


@dataclass
class Health:
    """Faults of one port: netsim/engine/state/faults.hpp."""

    random: RandomStream
    is_down: bool = False
    num_downs: int = 0
    loss_fraction: float = 0.0
    byte_arrives: float = 1.0  # chance that a byte arrives whole
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LOSS_CAUSES, 0))

    def departure(self) -> int:
        """Return what a packet that leaves now must find on arrival."""
        return self.num_downs - self.is_down

    def loss_cause(self, packet: Packet) -> str | None:
        """Return why a packet that left through the port does not arrive, if it does not."""
        if packet.departure != self.num_downs:
            return "link_down"
        return "bit_error" if self._has_error(packet.wire_bytes) else None

    def _has_error(self, num_bytes: int) -> bool:
        """Draw whether a packet has an error; only where there are any."""
        if self.loss_fraction > 0 and self.random.next_fraction() < self.loss_fraction:
            return True
        return self.byte_arrives < 1 and self.random.next_fraction() >= _power(self.byte_arrives, num_bytes)


class Port:
    """A directed port: transmitter, queues, and the wire to its peer's node."""

    peer: "Port"

    def __init__(self, run: RunState, number: int) -> None:
        self.run, self.number = run, number
        self.rate_bps: int = run.columns["port_rate_bps"][number]
        self.delay_ps: int = run.columns["port_delay_ps"][number]
        self.is_host: bool = bool(run.columns["port_is_host"][number])
        self.random = RandomStream(run.settings.random_key, number)
        self.health = Health(RandomStream(run.settings.fault_key, number))
        self.busy_until_ps = 0
        self.last_transmission_ps = 0
        self.has_wake = False
        self.queues = _queues(run)
        self.turn = 0  # the queue whose turn it is, of those with weights
        self.queued_bytes = 0
        self.load = LoadMeter(run, self.rate_bps) if run.settings.path_rule == QUALITY else None
        self.counts = dict.fromkeys(PORT_COLUMNS, 0)
        self.pause = PauseTimer(self.counts)  # paused where any of its queues is
        if not run.has_priorities:
            self.queues[DATA].pause = self.pause

    def sample_load(self) -> None:
        """Close the intervals of the load that have ended, before the queue or the count of bytes changes."""
        if self.load is not None:
            self.load.settle(self.run.now_ps, self.counts["tx_bytes"], self.queued_bytes)

    def append(self, packet: Packet) -> None:
        """Put a packet at the end of its queue."""
        self.sample_load()
        queue = self.queues[packet.priority]
        queue.packets.append(packet)
        if queue.is_counted:
            for level in (queue, self):
                level.queued_bytes += packet.wire_bytes
                level.counts["max_queue_bytes"] = max(level.counts["max_queue_bytes"], level.queued_bytes)

    def pop(self, queue: OutputQueue) -> Packet:
        """Take the first packet out of a queue."""
        self.sample_load()
        packet = queue.packets.popleft()
        if queue.is_counted:
            queue.queued_bytes -= packet.wire_bytes
            self.queued_bytes -= packet.wire_bytes
        return packet

    def drop(self) -> None:
        """Count a packet that ends here."""
        self.counts["dropped_packets"] += 1
        self.run.num_live -= 1

    def lose(self, cause: str) -> None:
        """Count a packet that a fault ends here."""
        self.health.dropped[cause] += 1
        self.drop()


def make_ports(run: RunState) -> list[Port]:
    """Return the ports of a run, each with its peer."""
    ports = [Port(run, number) for number in range(len(run.columns["port_rate_bps"]))]
    for port, peer in zip(ports, run.columns["port_peer"], strict=True):
        port.peer = ports[peer]
    return ports


def priority_of(run: RunState, kind: str, pair: int) -> int:
    """Return the queue that a queue pair's packets of a kind take."""
    if not run.has_priorities:
        is_acknowledgement = kind in ("ack", "nak", "rnr")
        is_data = kind == "data" or (run.settings.acknowledgements_are_data and is_acknowledgement)
        return DATA if is_data else CONTROL
    settings, own = run.settings, NO_PRIORITY
    if kind != "data":
        own = settings.cnp_priority if kind == "cnp" else settings.acknowledgement_priority
    return int(run.columns["priority_queue_pair"][pair] if own == NO_PRIORITY else own)


def serialization_ps(num_bytes: int, rate_bps: int) -> int:
    """Return how long a transmitter is busy with a frame, rounded up."""
    return -(-num_bytes * PS_BITS_PER_BYTE // rate_bps)


def _queues(run: RunState) -> list[OutputQueue]:
    if not run.has_priorities:
        return [OutputQueue(0, run.settings.marking), OutputQueue(0, run.settings.marking, is_counted=False)]
    names = ("weight", "ecn_min", "ecn_max", "ecn_max_fraction", "ecn_drops")
    rules = zip(*(run.columns[f"priority_{name}"] for name in names), strict=True)
    return [OutputQueue(weight, tuple(curve), drops_early=bool(drops)) for weight, *curve, drops in rules]


def _power(base: float, exponent: int) -> float:
    """Return a power by products in the compiled engine's order."""
    result = 1.0
    while exponent:
        if exponent % 2:
            result *= base
        exponent //= 2
        base *= base
    return result
