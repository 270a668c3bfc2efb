"""Loss recovery: which packet a queue pair sends next, which are on their way, and which it takes for lost.

Two ways with the same face. Go-back-N sends everything again from the oldest packet on that is not acknowledged.
Selective repeat sends each lost packet alone; a packet is lost if one sent later has arrived, and more time has passed
since its own sending than that one's round trip and the reorder window.

Source: InfiniBand Architecture Specification 1.4, section 9.7 (reliable service), as RoCEv2 adapters implement it;
IRN (SIGCOMM'18), 3.1 for selective acknowledgements, 3.2 for a bound on packets in flight; RFC 8985 (RACK), 6.2 for
losses by time.
"""

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.reference.ports import Packet
from fabrictune.netsim.reference.transfers import ReadyTransfers


class GoBackN:
    """Sends everything again from the oldest packet on that is not acknowledged."""

    deadline_ps = NEVER  # no packet is taken for lost by time

    def __init__(self, messages: ReadyTransfers) -> None:
        self.messages = messages
        self.oldest = self.next = self.in_flight_bytes = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return self.next == self.oldest

    def next_sequence(self) -> int | None:
        """Return what to send next, if anything."""
        return self.next if self.next < self.messages.end else None

    def waiting(self) -> list[int]:
        """Return all that is still to be sent."""
        return list(range(self.next, self.messages.end))

    def on_sent(self, sequence: int, _now_ps: int) -> None:
        """Note that a packet is on its way."""
        self.next = sequence + 1
        self.in_flight_bytes += self.messages.payload_bytes(sequence)

    def on_acknowledgement(self, packet: Packet, _now_ps: int) -> list[int]:
        """Take an acknowledgement of everything up to a packet; return what it acknowledges for the first time."""
        return self.acknowledge_below(packet.sequence + 1)

    def acknowledge_below(self, up_to: int) -> list[int]:
        """Take it that everything below `up_to` has arrived; return what is acknowledged for the first time."""
        acknowledged = list(range(self.oldest, up_to))
        if acknowledged:
            acked_bytes = sum(map(self.messages.payload_bytes, acknowledged))
            self.in_flight_bytes = self.in_flight_bytes - acked_bytes if self.next >= up_to else 0
            self.messages.acknowledge(self.oldest, up_to)
            self.oldest, self.next = up_to, max(self.next, up_to)
        return acknowledged

    def detect_losses(self, _now_ps: int) -> bool:
        """Return False: losses are what receivers report."""
        return False

    def take_trimmed(self, _packet: Packet) -> bool:
        """Refuse: trimming needs selective repeat."""
        raise AssertionError("trimming needs selective repeat")

    def rewind(self) -> None:
        """Send everything again that is not known to have arrived."""
        self.next, self.in_flight_bytes = self.oldest, 0


class SelectiveRepeat:
    """Sends each packet again, alone, that is taken for lost."""

    def __init__(self, messages: ReadyTransfers, window_packets: int, reorder_window_ps: int) -> None:
        self.messages, self.window_packets, self.reorder_window_ps = messages, window_packets, reorder_window_ps
        self.oldest = self.next = self.in_flight_bytes = 0
        self.flying: dict[int, int] = {}  # sequence -> when it was sent, in this order
        self.lost: set[int] = set()  # taken for lost, and to be sent again
        self.newest_sent_ps = -1  # when the packet was sent that was sent last of all that have arrived
        self.newest_rtt_ps = 0  # and its round trip
        self.deadline_ps = NEVER  # when the next packet may be taken for lost

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return not self.flying

    def next_sequence(self) -> int | None:
        """Return what to send next, if anything: the first lost packet, else a new one within the window."""
        if self.lost:
            return min(self.lost)
        return self.next if self.next < min(self.messages.end, self.oldest + self.window_packets) else None

    def waiting(self) -> list[int]:
        """Return all that is still to be sent."""
        return [*self.lost, *range(self.next, self.messages.end)]

    def on_sent(self, sequence: int, now_ps: int) -> None:
        """Note that a packet is on its way."""
        self.lost.discard(sequence)
        self.flying[sequence] = now_ps
        self.next = max(self.next, sequence + 1)
        self.in_flight_bytes += self.messages.payload_bytes(sequence)

    def on_acknowledgement(self, packet: Packet, now_ps: int) -> list[int]:
        """Take an acknowledgement of one packet and of all below `packet.expected`; return what newly arrived."""
        if packet.sent_ps > self.newest_sent_ps:
            self.newest_sent_ps, self.newest_rtt_ps = packet.sent_ps, now_ps - packet.sent_ps
        return self._acknowledge({*range(self.oldest, packet.expected), packet.sequence, *packet.reported})

    def acknowledge_below(self, up_to: int) -> list[int]:
        """Take it that everything below `up_to` has arrived; return what is acknowledged for the first time."""
        return self._acknowledge(set(range(self.oldest, up_to)))

    def _acknowledge(self, arrived: set[int]) -> list[int]:
        acknowledged = list((self.flying.keys() | self.lost) & arrived)
        for sequence in acknowledged:
            if self.flying.pop(sequence, None) is not None:
                self.in_flight_bytes -= self.messages.payload_bytes(sequence)
            self.lost.discard(sequence)
        if acknowledged:
            up_to = min([self.next, *self.flying, *self.lost])
            self.messages.acknowledge(self.oldest, up_to)
            self.oldest = up_to
        return acknowledged

    def detect_losses(self, now_ps: int) -> bool:
        """Give up what was due before now; return whether anything was. What is due later sets `deadline_ps`."""
        self.deadline_ps = NEVER
        has_lost = False
        for sequence, sent_ps in list(self.flying.items()):
            due_ps = sent_ps + self.newest_rtt_ps + self.reorder_window_ps
            if sent_ps >= self.newest_sent_ps:
                break
            if due_ps > now_ps:
                self.deadline_ps = due_ps
                break
            self._give_up(sequence)
            has_lost = True
        return has_lost

    def take_trimmed(self, packet: Packet) -> bool:
        """Give up a packet that was trimmed; return False where another sending of it is what is on its way."""
        if self.flying.get(packet.sequence) != packet.sent_ps:
            return False
        self._give_up(packet.sequence)
        return True

    def rewind(self) -> None:
        """Send everything again that is not known to have arrived."""
        for sequence in list(self.flying):
            self._give_up(sequence)

    def _give_up(self, sequence: int) -> None:
        del self.flying[sequence]
        self.lost.add(sequence)
        self.in_flight_bytes -= self.messages.payload_bytes(sequence)
