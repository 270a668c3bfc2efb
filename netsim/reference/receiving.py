"""Receiving in the reference engine: what a host answers to a packet."""

from fabrictune.netsim.reference.nic import Nic
from fabrictune.netsim.reference.state import Packet, Pair, Transfer


class Receiving(Nic):
    """Acknowledges packets in order, answers a gap once, turns marks into notifications."""

    def _deliver(self, packet: Packet) -> None:
        if packet.kind == "data":
            self._receive_data(packet)
            return
        self.num_live -= 1
        pair = self.pairs[packet.pair]
        if packet.kind == "ack":
            self._on_acknowledgement(packet, pair)
        elif packet.kind == "nak":
            self._on_nak(packet.pair, pair, packet.sequence)
        elif packet.kind == "rnr":
            self._on_refusal(packet.pair, pair, packet.sequence)
        else:
            self._take_notification(packet.pair, pair)

    def _note_mark(self, packet: Packet) -> None:
        pair = self.pairs[packet.pair]
        if packet.is_marked:
            pair.has_mark = True
            if "on_cnp" in self.law_events and self.now_ps >= pair.cnp_allowed_ps:
                pair.cnp_allowed_ps = self.now_ps + self.settings["cnp_interval_ps"]
                self.num_live += 1
                self._reply(packet.pair, "cnp", 0, packet)

    def _on_reply(self, _pair: int, number: int) -> None:
        self._answer(self.packets.pop(number))

    def _answer(self, packet: Packet) -> None:
        pair = self.pairs[packet.pair]
        if not self._is_receiver_ready(pair, packet.sequence):
            self._refuse(packet, pair)
            return
        if self._is_selective:
            self._answer_selectively(packet)
            return
        if packet.sequence == pair.expected:
            pair.expected += 1
            pair.unanswered += 1
            pair.has_sent_nak = False
            message = pair.message_of(packet.sequence)
            is_message_end = pair.expected == message.end
            if is_message_end:
                self._end_message(pair, message)
            if is_message_end or pair.unanswered >= self.settings["ack_every_packets"]:
                self._reply(packet.pair, "ack", packet.sequence, packet)
            else:
                self.num_live -= 1
        elif packet.sequence < pair.expected:
            self._reply(packet.pair, "ack", pair.expected - 1, packet)
        elif pair.has_sent_nak:
            self.num_live -= 1
        else:
            pair.has_sent_nak = True
            self._reply(packet.pair, "nak", pair.expected, packet)

    def _answer_selectively(self, packet: Packet) -> None:
        """Acknowledge a packet and all that has arrived; at once unless packets come in order."""
        pair, sequence = self.pairs[packet.pair], packet.sequence
        is_orderly = sequence == pair.expected and not pair.early
        if sequence >= pair.expected:
            pair.early.add(sequence)
        is_message_end = False
        while pair.expected in pair.early:
            pair.early.remove(pair.expected)
            pair.expected += 1
            message = pair.message_of(pair.expected - 1)
            if pair.expected == message.end:
                self._end_message(pair, message)
                is_message_end = True
        pair.unanswered += 1
        if is_orderly and not is_message_end and pair.unanswered < self.settings["ack_every_packets"]:
            self.num_live -= 1
        else:
            self._reply(packet.pair, "ack", sequence, packet)

    def _is_receiver_ready(self, pair: Pair, sequence: int) -> bool:
        if pair.receives is None or sequence < pair.expected:
            return True
        expected, coming = pair.message_of(pair.expected), pair.message_of(sequence)
        num_between = pair.messages.index(coming) - pair.messages.index(expected)
        return pair.receives.has_receive(num_between, self.now_ps)

    def _refuse(self, packet: Packet, pair: Pair) -> None:
        if packet.sequence != pair.expected:
            self.num_live -= 1
            return
        pair.has_sent_nak = True
        self._reply(packet.pair, "rnr", packet.sequence, packet)

    def _end_message(self, pair: Pair, message: Transfer) -> None:
        if pair.receives is not None:
            pair.receives.end_message(self.now_ps)
        self._finish(message)

    def _reply(self, number: int, kind: str, sequence: int, answered: Packet) -> None:
        pair = self.pairs[number]
        path = self._path(number, 1)
        reply = Packet(kind, number, sequence, self.settings["ack_bytes"], answered.sent_ps, path[1:])
        reply.endpoint_ps = self.now_ps - answered.arrived_ps
        reply.telemetry = answered.telemetry
        if kind == "ack":
            reply.expected = pair.expected
            reply.is_marked, pair.has_mark, pair.unanswered = pair.has_mark, False, 0
        self._enqueue(path[0], reply)
