"""Selective repeat in the reference engine: which packets a sender takes for lost, and how their answers count."""

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.reference.sending import Sending
from fabrictune.netsim.reference.state import Packet, Pair


class SelectiveRepeat(Sending):
    """What is sent again is each lost packet alone; a packet is lost if one sent later has arrived long since."""

    def _acknowledge_selectively(self, packet: Packet, pair: Pair) -> int:
        """Take an acknowledgement of one packet and of all below `packet.expected`; return payload newly arrived."""
        if packet.sent_ps > pair.newest_sent_ps:
            pair.newest_sent_ps, pair.newest_rtt_ps = packet.sent_ps, self.now_ps - packet.sent_ps
        return self._take_arrivals(packet.pair, pair, {*range(pair.oldest, packet.expected), packet.sequence})

    def _take_arrivals(self, number: int, pair: Pair, arrived: set[int]) -> int:
        acked = (pair.flying.keys() | pair.lost) & arrived
        if not acked:
            return 0
        mtu_bytes = self.settings["mtu_bytes"]
        for sequence in acked:
            if pair.flying.pop(sequence, None) is not None:
                pair.in_flight_bytes -= pair.payload_bytes(sequence, mtu_bytes)
            pair.lost.discard(sequence)
        acked_bytes = sum(pair.payload_bytes(sequence, mtu_bytes) for sequence in acked)
        self._advance_oldest(pair, min([pair.next, *pair.flying, *pair.lost]))
        self._restart_timeout(number, pair)
        return acked_bytes

    def _advance_oldest(self, pair: Pair, up_to: int) -> None:
        for message in pair.messages:
            if pair.oldest < message.end <= up_to:
                message.times["acknowledged_ps"] = self.now_ps
                pair.remaining -= 1
        pair.oldest = up_to

    def _restart_timeout(self, number: int, pair: Pair) -> None:
        pair.timeouts = pair.refusals = 0
        pair.timeout_ps = NEVER if self._is_idle(pair) else self._next_timeout_ps(pair)
        self._arm_timer(number, pair.timeout_ps)

    def _detect_losses(self, number: int, pair: Pair) -> bool:
        """Give up what was due before now; return whether anything was. What is due later sets the timer."""
        pair.reorder_deadline_ps = NEVER
        has_lost = False
        for sequence, sent_ps in list(pair.flying.items()):
            due_ps = sent_ps + pair.newest_rtt_ps + pair.reorder_window_ps
            if sent_ps >= pair.newest_sent_ps:
                break
            if due_ps > self.now_ps:
                pair.reorder_deadline_ps = due_ps
                self._arm_timer(number, due_ps)
                break
            self._give_up(pair, sequence)
            has_lost = True
        return has_lost

    def _give_up(self, pair: Pair, sequence: int) -> None:
        del pair.flying[sequence]
        pair.lost.add(sequence)
        pair.in_flight_bytes -= pair.payload_bytes(sequence, self.settings["mtu_bytes"])
