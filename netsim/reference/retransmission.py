"""Reliability in the reference engine: acknowledgements, gaps and timeouts, and what is sent again."""

import numpy as np

from fabrictune.cc.interface import NEVER, TELEMETRY_DTYPE
from fabrictune.netsim.reference.selective_repeat import SelectiveRepeat
from fabrictune.netsim.reference.state import Packet, Pair


class Retransmission(SelectiveRepeat):
    """What a sender makes of answers, and of none; under go-back-N all from the oldest packet on is sent again."""

    def _on_acknowledgement(self, packet: Packet, pair: Pair) -> None:
        if pair.has_failed or pair.remaining == 0:
            return
        pair.rtt_ps = self.now_ps - packet.sent_ps
        message = pair.message_of(pair.oldest)
        message.round_trips += 1
        message.rtt_ps += pair.rtt_ps
        message.endpoint_ps += packet.endpoint_ps
        acked_bytes = 0
        if self._is_selective:
            acked_bytes = self._acknowledge_selectively(packet, pair)
        elif packet.sequence >= pair.oldest:
            acked_bytes = self._acknowledge(packet.pair, pair, packet.sequence + 1)
        telemetry = np.array(packet.telemetry, TELEMETRY_DTYPE) if self.uses_telemetry else None
        self._call_law(
            packet.pair,
            "on_ack",
            self.now_ps,
            acked_bytes,
            pair.rtt_ps,
            packet.endpoint_ps,
            int(pair.flow["num_hops"][0]) if telemetry is None else len(telemetry),
            int(packet.is_marked),
            telemetry,
        )
        if self._is_selective and self._detect_losses(packet.pair, pair):
            self._call_law(packet.pair, "on_nack", self.now_ps)
        self._resume(packet.pair)

    def _on_nak(self, number: int, pair: Pair, expected: int) -> None:
        if pair.has_failed or pair.remaining == 0:
            return
        if expected > pair.oldest:
            self._acknowledge(number, pair, expected)
        if expected == pair.oldest:
            self._rewind(pair)
        self._call_law(number, "on_nack", self.now_ps)
        self._resume(number)

    def _on_refusal(self, number: int, pair: Pair, expected: int) -> None:
        if pair.has_failed or pair.remaining == 0 or expected < pair.oldest:
            return
        if expected > pair.oldest:
            if self._is_selective:
                self._take_arrivals(number, pair, set(range(pair.oldest, expected)))
            else:
                self._acknowledge(number, pair, expected)
        if self.settings["rnr_retries_are_limited"] and pair.refusals == self.settings["rnr_retries"]:
            pair.has_failed = True
            return
        pair.refusals += 1
        pair.refused_until_ps = self.now_ps + self.settings["rnr_wait_ps"]
        self._rewind(pair)
        pair.timeout_ps = NEVER
        self._resume(number)

    def _on_retransmission_timeout(self, number: int, pair: Pair) -> None:
        pair.timeout_ps = NEVER
        pair.timeouts += 1
        if pair.timeouts == len(self.inputs["retransmission_wait"]):
            pair.has_failed = True
            return
        self._rewind(pair)
        self._call_law(number, "on_timeout", self.now_ps)

    def _on_reorder_deadline(self, number: int, pair: Pair) -> None:
        if pair.reorder_deadline_ps <= self.now_ps and self._detect_losses(number, pair):
            self._call_law(number, "on_nack", self.now_ps)

    def _acknowledge(self, number: int, pair: Pair, up_to: int) -> int:
        mtu_bytes = self.settings["mtu_bytes"]
        acked_bytes = sum(pair.payload_bytes(sequence, mtu_bytes) for sequence in range(pair.oldest, up_to))
        self._advance_oldest(pair, up_to)
        pair.in_flight_bytes = pair.in_flight_bytes - acked_bytes if pair.next >= up_to else 0
        pair.next = max(pair.next, up_to)
        self._restart_timeout(number, pair)
        return acked_bytes

    def _rewind(self, pair: Pair) -> None:
        """Send everything again that is not known to have arrived."""
        if self._is_selective:
            for sequence in list(pair.flying):
                self._give_up(pair, sequence)
        else:
            pair.next, pair.in_flight_bytes = pair.oldest, 0
