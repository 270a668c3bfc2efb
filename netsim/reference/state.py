"""What the reference engine remembers of packets, ports, transfers and queue pairs."""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from numpy.typing import NDArray

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.reference.receive_queue import ReceiveQueue

NOT_YET = -1
TIME_COLUMNS = ("ready_ps", "start_ps", "finish_ps", "acknowledged_ps")
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
_MASK = 2**64 - 1


class Kind(IntEnum):
    """Kinds of events, in the order in which they happen at one instant."""

    ARRIVAL = 0
    PAUSE_FRAME = 1
    WAKE = 2
    REPLY = 3
    PACE = 4
    TIMER = 5
    TRANSFER = 6
    CLOCK = 7


class ClockEvent(IntEnum):
    """Rare events, in the order in which they happen at the end of an instant."""

    TIME_LIMIT = 0
    FAULT = 1
    REROUTE = 2
    DRAIN = 3


@dataclass
class Packet:
    """A packet queued or in flight."""

    kind: str  # data, ack, nak, cnp, rnr
    pair: int
    sequence: int  # of its own, of what a cumulative answer is about, or of what a selective one answers
    wire_bytes: int
    sent_ps: int
    path: list[int]  # ports still to leave through, where they are fixed
    ingress: int | None = None
    is_marked: bool = False
    expected: int = 0  # of a selective acknowledgement: everything below has arrived
    arrived_ps: int = 0  # of a data packet at its destination
    endpoint_ps: int = 0  # of an answer: how long the packet answered was in the host
    departure: int = 0  # how often the wire it is on had been down
    telemetry: list[tuple[int, int, int, float]] = field(default_factory=list)  # what the ports on its way said


@dataclass
class Port:
    """A directed port, and the ingress buffer its wire ends in."""

    rate_bps: int
    delay_ps: int
    random: "RandomStream"
    busy_until_ps: int = 0
    control: deque[Packet] = field(default_factory=deque)
    data: deque[Packet] = field(default_factory=deque)
    ring: deque[int] = field(default_factory=deque)  # queue pairs whose turn may come
    has_wake: bool = False
    is_paused: bool = False
    pauses_sender: bool = False
    pause_frames: int = 0
    paused_since_ps: int = 0
    ingress_bytes: int = 0
    queued_bytes: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PORT_COLUMNS, 0))


@dataclass
class Share:
    """What one queue holds of a switch's buffer, headroom apart."""

    reserve_bytes: int
    bytes: int = 0


@dataclass
class Pool:
    """What is free of a switch's buffer beyond all reserves, and of its headroom."""

    free_bytes: int
    free_headroom_bytes: int

    def room(self, share: Share, alpha: float) -> int:
        """Return how many bytes a queue may still take."""
        threshold = share.reserve_bytes + int(alpha * self.free_bytes)
        most = max(0, share.reserve_bytes - share.bytes) + self.free_bytes
        return max(0, min(threshold - share.bytes, most))

    def take(self, share: Share, alpha: float, num_bytes: int) -> bool:
        """Take in a packet if there is room for all of it."""
        if num_bytes > self.room(share, alpha):
            return False
        self.change(share, num_bytes)
        return True

    def change(self, share: Share, num_bytes: int) -> None:
        """Add bytes to a queue, or take them out."""
        self.free_bytes += max(0, share.bytes - share.reserve_bytes)
        share.bytes += num_bytes
        self.free_bytes -= max(0, share.bytes - share.reserve_bytes)


@dataclass
class OutputQueue:
    """One priority's queue at a port, and the watchdog over it."""

    share: Share
    packets: deque[Packet] = field(default_factory=deque)
    ring: deque[int] = field(default_factory=deque)  # queue pairs whose turn may come
    queued_bytes: int = 0
    balance_bytes: int = 0
    is_paused: bool = False
    is_storm: bool = False
    paused_since_ps: int = 0
    pause_ends_ps: int = NEVER
    look_ps: int = NEVER
    last_pause_ps: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUEUE_COLUMNS, 0))


@dataclass
class InputQueue:
    """What came through a port with one lossless priority and is still in the node behind it."""

    share: Share
    headroom_limit_bytes: int
    resume_offset_bytes: int
    headroom_bytes: int = 0
    max_headroom_bytes: int = 0
    pauses_sender: bool = False
    refresh_ps: int = NEVER
    dropped_packets: int = 0


@dataclass
class Transfer:
    """A transfer's progress."""

    row: int
    first: int = 0  # sequence numbers: first packet, and one behind the last
    end: int = 0
    last_payload_bytes: int = 0
    waiting: int = 0
    times: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TIME_COLUMNS, NOT_YET))
    resent: int = 0
    round_trips: int = 0  # and their sums, of which parts in the receiving host
    rtt_ps: int = 0
    endpoint_ps: int = 0
    cnps: int = 0


@dataclass
class Pair:
    """Both ends of a queue pair."""

    port: int
    flow: NDArray[Any]  # one record
    rtt_ps: int
    remaining: int = 0  # transfers not acknowledged
    messages: list[Transfer] = field(default_factory=list)
    next: int = 0
    oldest: int = 0
    highest: int = 0
    in_flight_bytes: int = 0
    last_send_ps: int = -NEVER // 2
    last_wire_bytes: int = 0
    in_ring: bool = False
    has_failed: bool = False
    pace_event_ps: int = NEVER
    timer_event_ps: int = NEVER
    timeout_ps: int = NEVER
    timeouts: int = 0
    notifications: deque[int] = field(default_factory=deque)  # when those still being handled reach the law
    # the sender under selective repeat
    reorder_window_ps: int = 0
    flying: dict[int, int] = field(default_factory=dict)  # sequence -> when it was sent, in this order
    lost: set[int] = field(default_factory=set)  # taken for lost, and to be sent again
    newest_sent_ps: int = -1  # when the packet was sent that was sent last of all that have arrived
    newest_rtt_ps: int = 0  # and its round trip
    reorder_deadline_ps: int = NEVER
    # the sender of a receiver that may not be ready
    refused_until_ps: int = 0
    refusals: int = 0
    # the receiver
    expected: int = 0
    receives: ReceiveQueue | None = None  # of receivers that may not be ready
    early: set[int] = field(default_factory=set)  # arrived before one sent earlier
    unanswered: int = 0
    has_sent_nak: bool = False
    has_mark: bool = False
    cnp_allowed_ps: int = 0

    @property
    def end(self) -> int:
        """One behind the last packet of the last ready transfer."""
        return self.messages[-1].end if self.messages else 0

    def message_of(self, sequence: int) -> Transfer:
        """Return the transfer of a packet, the last one for what is not ready yet."""
        return next((message for message in self.messages if sequence < message.end), self.messages[-1])

    def payload_bytes(self, sequence: int, mtu_bytes: int) -> int:
        """Return the payload of a packet."""
        message = self.message_of(sequence)
        return message.last_payload_bytes if sequence + 1 == message.end else mtu_bytes


class RandomStream:
    """Random numbers of which the n-th is a function of key, stream and n: netsim/engine/state/random.hpp."""

    def __init__(self, key: int, stream: int) -> None:
        self.state = mix64(key ^ mix64(stream + 1))

    def next_fraction(self) -> float:
        """Return the next number in [0, 1)."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        return (mix64(self.state) >> 11) * 2.0**-53

    def next_below(self, limit: int) -> int:
        """Return the next number of 0 to limit - 1."""
        return int(self.next_fraction() * limit)


def mix64(value: int) -> int:
    """Return SplitMix64's output function of a 64-bit number."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
