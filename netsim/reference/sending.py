"""Sending in the reference engine: queue pairs take turns at their NIC, each within its window and pace."""

import math
from collections import deque

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.reference.forwarding import PS_BITS_PER_BYTE
from fabrictune.netsim.reference.laws import Laws
from fabrictune.netsim.reference.state import Kind, Packet, Pair

LONGEST_GAP_PS = 1e17


class Sending(Laws):
    """Sends data packets; what happens when they get lost is left to a subclass."""

    @property
    def _is_selective(self) -> bool:
        return len(self.inputs["reorder_window"]) > 0

    def _next_sequence(self, pair: Pair) -> int | None:
        """Return what a queue pair would send next, if anything."""
        if pair.lost:
            return min(pair.lost)
        end = min(pair.end, pair.oldest + self.settings["window_packets"]) if self._is_selective else pair.end
        return pair.next if pair.next < end else None

    def _is_idle(self, pair: Pair) -> bool:
        """Return whether nothing is on its way."""
        return not pair.flying if self._is_selective else pair.next == pair.oldest

    def _may_send(self, pair: Pair) -> bool:
        sequence = self._next_sequence(pair)
        if sequence is None:
            return False
        if self._is_idle(pair):
            return True
        payload_bytes = pair.payload_bytes(sequence, self.settings["mtu_bytes"])
        return bool(pair.in_flight_bytes + payload_bytes <= pair.flow["cwnd_bytes"][0])

    def _earliest_send_ps(self, pair: Pair) -> int:
        rate_bps, cwnd_bytes = float(pair.flow["rate_bps"][0]), float(pair.flow["cwnd_bytes"][0])
        gap_ps = int(min(pair.last_wire_bytes * PS_BITS_PER_BYTE / rate_bps, LONGEST_GAP_PS))
        if cwnd_bytes < self.settings["mtu_bytes"]:
            round_trips = self.settings["mtu_bytes"] / cwnd_bytes
            gap_ps = max(gap_ps, int(min(math.ceil(pair.rtt_ps * round_trips), LONGEST_GAP_PS)))
        return max(pair.last_send_ps + gap_ps, pair.refused_until_ps)

    def _resume(self, number: int) -> None:
        pair = self.pairs[number]
        if pair.in_ring or pair.has_failed or not self._may_send(pair):
            return
        earliest_ps = self._earliest_send_ps(pair)
        if pair.pace_event_ps <= earliest_ps:
            return
        port = self.ports[pair.port]
        if earliest_ps > max(self.now_ps, port.busy_until_ps):
            self._schedule_pace(number, earliest_ps)
            return
        pair.in_ring = True
        self._ring_of(pair.port, number).append(number)
        self._kick(pair.port)

    def _schedule_pace(self, number: int, time_ps: int) -> None:
        if time_ps < self.pairs[number].pace_event_ps:
            self.pairs[number].pace_event_ps = time_ps
            self._push(time_ps, Kind.PACE, number)

    def _on_pace(self, number: int, _payload: int) -> None:
        if self.pairs[number].pace_event_ps == self.now_ps:
            self.pairs[number].pace_event_ps = NEVER
            self._resume(number)

    def _send_from_ring(self, ring: deque[int]) -> bool:
        while ring:
            row = ring.popleft()
            pair = self.pairs[row]
            pair.in_ring = False
            if pair.has_failed or not self._may_send(pair):
                continue
            earliest_ps = self._earliest_send_ps(pair)
            if earliest_ps > self.now_ps:
                self._schedule_pace(row, earliest_ps)
                continue
            self._send_data(row, pair)
            return True
        return False

    def _send_data(self, number: int, pair: Pair) -> None:
        sequence = self._next_sequence(pair)
        assert sequence is not None
        message = pair.message_of(sequence)
        payload_bytes = pair.payload_bytes(sequence, self.settings["mtu_bytes"])
        wire_bytes = max(payload_bytes + self.settings["wire_overhead_bytes"], self.settings["ack_bytes"])
        if sequence < pair.highest:
            message.resent += 1
        elif sequence == message.first:
            message.times["start_ps"] = self.now_ps
        pair.highest = max(pair.highest, sequence + 1)
        if self._is_selective:
            pair.lost.discard(sequence)
            pair.flying[sequence] = self.now_ps
        pair.next = max(pair.next, sequence + 1)
        pair.in_flight_bytes += payload_bytes
        pair.last_send_ps, pair.last_wire_bytes = self.now_ps, wire_bytes
        packet = Packet("data", number, sequence, wire_bytes, self.now_ps, self._path(number, 0)[1:])
        self.num_live += 1
        self._transmit(pair.port, packet)
        if pair.timeout_ps == NEVER:
            pair.timeout_ps = self._next_timeout_ps(pair)
            self._arm_timer(number, pair.timeout_ps)
        self._call_law(number, "on_send", self.now_ps, payload_bytes)
        if not self._may_send(pair):
            return
        earliest_ps = self._earliest_send_ps(pair)
        if earliest_ps <= self.ports[pair.port].busy_until_ps:
            pair.in_ring = True
            self._ring_of(pair.port, number).append(number)
        else:
            self._schedule_pace(number, earliest_ps)

    def _next_timeout_ps(self, pair: Pair) -> int:
        wait_ps = int(self.inputs["retransmission_wait"][pair.timeouts])
        return NEVER if wait_ps == NEVER else self.now_ps + wait_ps
