"""Receivers: the buffer of a NIC, and what the receiving end of a queue pair answers.

A NIC with a slow host keeps what arrives until the host has taken it. Each data packet is then answered after a delay:
packets in order are acknowledged, a gap is answered once, a mark becomes a congestion notification, and a message
without a posted receive is refused.

Source: InfiniBand Architecture Specification 1.4, section 9.7, and 9.7.5.2.8 (RNR NAK); DCQCN (SIGCOMM'15), section 3.2
for the notification point; Swift (SIGCOMM'20), 3.2, for the split of a round trip into fabric and endpoint; Ultra
Ethernet Specification 1.0, 3.5.11.14 and 3.5.12, for coalesced acknowledgements.
"""

from collections import deque

from fabrictune.netsim.reference.buffers import PortBuffers
from fabrictune.netsim.reference.forwarding import Forwarding
from fabrictune.netsim.reference.host_links import HostLinks
from fabrictune.netsim.reference.ports import Packet, Port, priority_of, serialization_ps
from fabrictune.netsim.reference.priorities import PriorityBuffers
from fabrictune.netsim.reference.run import ClockEvent, EventKind, RandomStream, RunState
from fabrictune.netsim.reference.transfers import ReadyTransfers, Transfer, Transfers

REPORTED_PACKETS = 64  # bits of a coalesced acknowledgement
LEAST_COUNTED_BYTES = 1024  # of a packet's payload, until it is due


class NicBuffer:
    """Packets that came through a port and wait for their host to take them."""

    def __init__(
        self, run: RunState, buffers: PortBuffers | PriorityBuffers, port: Port, host_links: HostLinks
    ) -> None:
        self.run, self.buffers, self.port, self.host_links = run, buffers, port, host_links
        self.drain_rate_bps: int = run.columns["drain_rate"][port.number]  # 0: at once
        self.packets: deque[Packet] = deque()

    def append(self, packet: Packet) -> None:
        """Take in a packet, or drop it if there is no room."""
        if not self.buffers.admit(packet, None):
            self.port.drop()
            return
        self.packets.append(packet)
        if len(self.packets) == 1:
            self._schedule_drain()

    def on_drain(self) -> Packet:
        """Hand on the packet that the host has taken."""
        packet = self.packets.popleft()
        self.buffers.release(packet, None)
        if self.packets:
            self._schedule_drain()
        return packet

    def _schedule_drain(self) -> None:
        packet = self.packets[0]
        done_ps = self.run.now_ps + serialization_ps(packet.wire_bytes, self.drain_rate_bps)
        done_ps = max(done_ps, self.host_links.write(self.port.peer, packet))
        self.run.schedule(done_ps, EventKind.CLOCK, ClockEvent.DRAIN, self.port.number)


class ReceiveQueue:
    """Receives that a queue pair's messages take in turn, and that are posted anew one after another."""

    def __init__(self, num_receives: int, replenish_ps: int) -> None:
        self.num_posted = num_receives  # from the message expected on
        self.replenish_ps = replenish_ps
        self.replenished_ps: deque[int] = deque()

    def has_receive(self, num_between: int, now_ps: int) -> bool:
        """Return whether there is one for the message that comes so many after the one expected."""
        posted = sum(time_ps <= now_ps for time_ps in self.replenished_ps)
        return num_between < self.num_posted + posted

    def end_message(self, now_ps: int) -> None:
        """Take a receive for a message that has ended, and post another."""
        self.num_posted -= 1
        begins_ps = max([now_ps, *list(self.replenished_ps)[-1:]])
        self.replenished_ps.append(begins_ps + self.replenish_ps)


class Receiver:
    """The receiving end of one queue pair."""

    def __init__(
        self,
        run: RunState,
        forwarding: Forwarding,
        transfers: Transfers,
        messages: ReadyTransfers,
        number: int,
        *,
        sends_cnps: bool,
    ) -> None:
        settings = run.settings
        self.run, self.forwarding, self.transfers, self.messages = run, forwarding, transfers, messages
        self.number, self.sends_cnps = number, sends_cnps
        self.is_selective = bool(run.columns["reorder_window"])
        self.expected = 0  # everything below has arrived
        self.early: set[int] = set()  # arrived before one sent earlier
        self.unreported: set[int] = set()  # arrived, and no acknowledgement has said so
        self.unanswered = self.unanswered_bytes = 0
        self.has_sent_nak = self.has_mark = False
        self.cnp_allowed_ps = 0
        self.random = RandomStream(settings.endpoint_key, number)
        self.answer_ps = -1
        self.receives: ReceiveQueue | None = None
        if settings.num_receives:
            self.receives = ReceiveQueue(settings.num_receives, settings.replenish_ps)

    def on_data(self, packet: Packet) -> None:
        """Look at the mark of a packet that the host has, and answer the packet, perhaps later."""
        settings = self.run.settings
        self._note_mark(packet)
        delay_ps = settings.endpoint_delay_ps
        if not delay_ps and not settings.endpoint_jitter_ps:
            self.answer(packet)
            return
        if settings.endpoint_jitter_ps:
            delay_ps += self.random.next_below(settings.endpoint_jitter_ps)
        self.answer_ps = max(self.run.now_ps + delay_ps, self.answer_ps + 1)
        self.run.schedule(self.answer_ps, EventKind.REPLY, self.number, packet)

    def on_trimmed(self, packet: Packet) -> None:
        """Answer at once a packet that a switch has trimmed."""
        self._reply("trim-nack", packet.sequence, packet)

    def _note_mark(self, packet: Packet) -> None:
        if packet.is_marked:
            self.has_mark = True
            if self.sends_cnps and self.run.now_ps >= self.cnp_allowed_ps:
                self.cnp_allowed_ps = self.run.now_ps + self.run.settings.cnp_interval_ps
                self.run.num_live += 1
                self._reply("cnp", 0, packet)

    def answer(self, packet: Packet) -> None:
        """Acknowledge a packet, refuse it, report a gap, or say nothing."""
        if not self._is_ready(packet.sequence):
            self._refuse(packet)
        elif self.is_selective:
            self._answer_selectively(packet)
        elif packet.sequence == self.expected:
            self._accept(packet)
        elif packet.sequence < self.expected:
            self._reply("ack", self.expected - 1, packet)
        elif self.has_sent_nak:
            self.run.num_live -= 1
        else:
            self.has_sent_nak = True
            self._reply("nak", self.expected, packet)

    def _is_ready(self, sequence: int) -> bool:
        """Return whether a receive is posted for a packet's message."""
        if self.receives is None or sequence < self.expected:
            return True
        index = self.messages.transfers.index
        num_between = index(self.messages.of(sequence)) - index(self.messages.of(self.expected))
        return self.receives.has_receive(num_between, self.run.now_ps)

    def _refuse(self, packet: Packet) -> None:
        if packet.sequence == self.expected:
            self.has_sent_nak = True
            self._reply("rnr", packet.sequence, packet)
        else:
            self.run.num_live -= 1

    def _accept(self, packet: Packet) -> None:
        """Acknowledge a packet in order, where a message ends or enough packets are not acknowledged yet."""
        self.unanswered += 1
        self.has_sent_nak = False
        is_message_end = self._advance()
        if is_message_end or self.unanswered >= self.run.settings.ack_every_packets:
            self._reply("ack", packet.sequence, packet)
        else:
            self.run.num_live -= 1

    def _answer_selectively(self, packet: Packet) -> None:
        """Acknowledge a packet and all that has arrived; at once unless packets come in order, or none need be."""
        is_old = packet.sequence < self.expected or packet.sequence in self.early
        self.unanswered += 1
        may_wait = packet.sequence == self.expected and not self.early
        may_wait &= self.unanswered < self.run.settings.ack_every_packets
        if self.run.settings.acknowledge_after_bytes:
            self.unanswered_bytes += max(self._payload_bytes(packet), LEAST_COUNTED_BYTES)
            is_due = self.unanswered_bytes >= self.run.settings.acknowledge_after_bytes
            may_wait = not (is_due or is_old or self.has_mark or packet.wants_ack)
        if packet.sequence >= self.expected:
            self.early.add(packet.sequence)
            self.unreported.add(packet.sequence)
        is_message_end = False
        while self.expected in self.early:
            self.early.remove(self.expected)
            is_message_end |= self._advance()
        if may_wait and not is_message_end:
            self.run.num_live -= 1
        else:
            self._reply("ack", packet.sequence, packet)

    def _payload_bytes(self, packet: Packet) -> int:
        """Return what of a packet is no header."""
        return max(0, packet.wire_bytes - int(self.run.settings.wire_overhead_bytes))

    def _report(self) -> frozenset[int]:
        """Return what has arrived of 64 packets, from the first on that no acknowledgement has reported."""
        self.unreported = {sequence for sequence in self.unreported if sequence >= self.expected}
        if not self.run.settings.acknowledge_after_bytes or not self.unreported:
            return frozenset()
        bits = range(min(self.unreported), min(self.unreported) + REPORTED_PACKETS)
        self.unreported.difference_update(bits)
        return frozenset(self.early.intersection(bits))

    def _advance(self) -> bool:
        """Expect the next packet; return whether the one before it was a message's last, which ends the message."""
        message = self.messages.of(self.expected)
        self.expected += 1
        if self.expected < message.end:
            return False
        self._end_message(message)
        return True

    def _end_message(self, message: Transfer) -> None:
        if self.receives is not None:
            self.receives.end_message(self.run.now_ps)
        self.transfers.finish(message)

    def _reply(self, kind: str, sequence: int, answered: Packet) -> None:
        """Send an answer; `answered` is the data packet that it is about."""
        first, *path = self.forwarding.routes.path(self.number, 1)
        priority = priority_of(self.run, kind, self.number)
        ack_bytes = self.run.settings.ack_bytes
        reply = Packet(kind, self.number, sequence, ack_bytes, answered.sent_ps, path, priority)
        reply.endpoint_ps = self.run.now_ps - answered.arrived_ps
        reply.telemetry, reply.is_last_hop = answered.telemetry, answered.is_last_hop
        if kind != "cnp":
            reply.entropy = answered.entropy
        if kind == "trim-nack":
            reply.is_marked = answered.is_marked
        if kind == "ack":
            reply.expected, reply.reported = self.expected, self._report()
            reply.is_marked, self.has_mark, self.unanswered = self.has_mark, False, 0
            self.unanswered_bytes = 0
        self.forwarding.enqueue(self.forwarding.ports[first], reply)
