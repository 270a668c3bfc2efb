"""The reference engine: hosts, laws and transfers on top of its ports.

The meaning of every rule is that of netsim/engine; the sources stand there. Telemetry is not collected here.
"""

import heapq
import math
from collections.abc import Mapping
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from cc.checking import handlers
from cc.interface import NEVER, NUM_TIMERS, Status
from cc.interpreting import InterpretedLaw
from foundation.traces import Medium
from netsim.lowering.inputs import EngineInputs
from netsim.reference.forwarding import PS_BITS_PER_BYTE, Forwarding, serialization_ps
from netsim.reference.state import NOT_YET, PORT_COLUMNS, TIME_COLUMNS, Kind, Packet, Pair, Transfer

LONGEST_GAP_PS = 1e17


class ReferenceEngine(Forwarding):
    """One run; `run()` it, then read `outcome`, `transfer_columns()` and `port_columns()`."""

    def __init__(self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None = None) -> None:
        super().__init__(inputs)
        self.law = InterpretedLaw(law, law_settings)
        self.law_events = frozenset(handlers(law))
        self.num_transfer_events = 0
        self.nvlink_until_ps: dict[tuple[str, int], int] = {}  # when a GPU's link out or in is free
        self.outcome = "running"
        self.pairs = [
            Pair(self._path(pair, 0)[0], inputs.flow[pair : pair + 1].copy(), int(inputs.flow["base_rtt_ps"][pair]))
            for pair in range(len(inputs.flow))
        ]
        self.transfers = [Transfer(row, waiting=int(waiting)) for row, waiting in enumerate(inputs.num_dependencies)]
        for row, transfer in enumerate(self.transfers):
            if inputs.transfer_medium[row] == Medium.FABRIC:
                self.pairs[inputs.transfer_qp[row]].remaining += 1
            if transfer.waiting == 0:
                self._schedule_transfer(int(inputs.transfer_start[row] + inputs.transfer_delay[row]), row)
        if self.settings["time_limit_ps"] != NEVER:
            self._push(self.settings["time_limit_ps"], Kind.CLOCK, 0)

    def run(self) -> None:
        """Handle events in order until everything is done, or nothing can be."""
        on_event = {
            Kind.ARRIVAL: self._on_arrival,
            Kind.PAUSE_FRAME: self._on_pause_frame,
            Kind.WAKE: self._on_wake,
            Kind.REPLY: self._on_reply,
            Kind.PACE: self._on_pace,
            Kind.TIMER: self._on_timer,
            Kind.TRANSFER: self._on_transfer,
            Kind.CLOCK: self._on_time_limit,
        }
        self.outcome = "running" if self.transfers else "finished"
        while self.outcome == "running":
            if not self.events:
                self.outcome = "stalled"
                break
            self.now_ps, kind, number, payload = heapq.heappop(self.events)
            on_event[kind](number, payload)
            if self.num_live == 0:
                self._end_if_nothing_is_left()

    def transfer_columns(self) -> dict[str, NDArray[np.int64]]:
        """Return the columns that the compiled engine returns under the same names."""
        columns = {name: [transfer.times[name] for transfer in self.transfers] for name in TIME_COLUMNS}
        columns["packets_sent"] = [self._packets_sent(transfer) for transfer in self.transfers]
        columns["packets_retransmitted"] = [transfer.resent for transfer in self.transfers]
        columns["cnps"] = [transfer.cnps for transfer in self.transfers]
        return {name: np.array(values, np.int64) for name, values in columns.items()}

    def port_columns(self) -> dict[str, NDArray[np.int64]]:
        """Return the columns that the compiled engine returns under the same names."""
        for port in self.ports:
            if port.is_paused:
                port.counts["paused_ps"] += self.now_ps - port.paused_since_ps
                port.paused_since_ps = self.now_ps
        return {name: np.array([port.counts[name] for port in self.ports], np.int64) for name in PORT_COLUMNS}

    def _packets_sent(self, transfer: Transfer) -> int:
        row = transfer.row
        if transfer.times["start_ps"] == NOT_YET or self.inputs.transfer_medium[row] != Medium.FABRIC:
            return 0
        highest = self.pairs[int(self.inputs.transfer_qp[row])].highest
        return min(highest, transfer.end) - transfer.first + transfer.resent

    def _end_if_nothing_is_left(self) -> None:
        is_open = any(pair.oldest < pair.end and not pair.has_failed for pair in self.pairs)
        if all(transfer.times["acknowledged_ps"] != NOT_YET for transfer in self.transfers):
            self.outcome = "finished"
        elif not is_open and self.num_transfer_events == 0:
            self.outcome = "stalled"

    def _on_time_limit(self, _number: int, _payload: int) -> None:
        self.outcome = "time-limit"

    # Transfers

    def _schedule_transfer(self, time_ps: int, row: int, *, is_end: bool = False) -> None:
        self.num_transfer_events += 1
        self._push(time_ps, Kind.TRANSFER, row, int(is_end))

    def _on_transfer(self, row: int, is_end: int) -> None:
        self.num_transfer_events -= 1
        transfer, medium = self.transfers[row], self.inputs.transfer_medium[row]
        num_bytes = int(self.inputs.transfer_bytes[row])
        if not is_end:
            transfer.times["ready_ps"] = self.now_ps
            if medium == Medium.FABRIC:
                self._append_to_pair(int(self.inputs.transfer_qp[row]), transfer, num_bytes)
                return
            transfer.times["start_ps"] = self.now_ps
            if medium == Medium.NVLINK:
                self._schedule_transfer(self._cross_nvlink(row, num_bytes), row, is_end=True)
                return
        transfer.times["acknowledged_ps"] = self.now_ps
        self._finish(transfer)

    def _cross_nvlink(self, row: int, num_bytes: int) -> int:
        """Return when both GPUs' links have carried a transfer that is ready now."""
        duration_ps = serialization_ps(num_bytes, self.settings["nvlink_rate_bps"])
        ends = ("out", int(self.inputs.nvlink_source[row])), ("in", int(self.inputs.nvlink_destination[row]))
        for end in ends:
            self.nvlink_until_ps[end] = max(self.nvlink_until_ps.get(end, 0), self.now_ps) + duration_ps
        return max(self.nvlink_until_ps[end] for end in ends)

    def _append_to_pair(self, number: int, transfer: Transfer, num_bytes: int) -> None:
        pair, mtu_bytes = self.pairs[number], self.settings["mtu_bytes"]
        if pair.has_failed:
            return
        num_packets = max(1, -(-num_bytes // mtu_bytes))
        transfer.first, transfer.end = pair.end, pair.end + num_packets
        transfer.last_payload_bytes = num_bytes - (num_packets - 1) * mtu_bytes
        pair.messages.append(transfer)
        if len(pair.messages) == 1:
            self._call_law(number, "on_start", self.now_ps)
        self._resume(number)

    def _finish(self, transfer: Transfer) -> None:
        transfer.times["finish_ps"] = self.now_ps
        offsets = self.inputs.dependent_offset
        for row in self.inputs.dependent_row[offsets[transfer.row] : offsets[transfer.row + 1]]:
            dependent = self.transfers[row]
            dependent.waiting -= 1
            if dependent.waiting == 0:
                earliest_ps = max(self.now_ps, int(self.inputs.transfer_start[row]))
                self._schedule_transfer(earliest_ps + int(self.inputs.transfer_delay[row]), int(row))

    # Senders

    def _is_window_open(self, pair: Pair) -> bool:
        if pair.next == pair.oldest:
            return True
        payload_bytes = pair.payload_bytes(pair.next, self.settings["mtu_bytes"])
        return bool(pair.in_flight_bytes + payload_bytes <= pair.flow["cwnd_bytes"][0])

    def _earliest_send_ps(self, pair: Pair) -> int:
        rate_bps, cwnd_bytes = float(pair.flow["rate_bps"][0]), float(pair.flow["cwnd_bytes"][0])
        gap_ps = int(min(pair.last_wire_bytes * PS_BITS_PER_BYTE / rate_bps, LONGEST_GAP_PS))
        if cwnd_bytes < self.settings["mtu_bytes"]:
            round_trips = self.settings["mtu_bytes"] / cwnd_bytes
            gap_ps = max(gap_ps, int(min(math.ceil(pair.rtt_ps * round_trips), LONGEST_GAP_PS)))
        return pair.last_send_ps + gap_ps

    def _resume(self, number: int) -> None:
        pair = self.pairs[number]
        if pair.in_ring or pair.has_failed or pair.next == pair.end or not self._is_window_open(pair):
            return
        earliest_ps = self._earliest_send_ps(pair)
        if pair.pace_event_ps <= earliest_ps:
            return
        port = self.ports[pair.port]
        if earliest_ps > max(self.now_ps, port.busy_until_ps):
            self._schedule_pace(number, earliest_ps)
            return
        pair.in_ring = True
        port.ring.append(number)
        self._kick(pair.port)

    def _schedule_pace(self, number: int, time_ps: int) -> None:
        if time_ps < self.pairs[number].pace_event_ps:
            self.pairs[number].pace_event_ps = time_ps
            self._push(time_ps, Kind.PACE, number)

    def _on_pace(self, number: int, _payload: int) -> None:
        if self.pairs[number].pace_event_ps == self.now_ps:
            self.pairs[number].pace_event_ps = NEVER
            self._resume(number)

    def _send_from_ring(self, number: int) -> bool:
        ring = self.ports[number].ring
        while ring:
            row = ring.popleft()
            pair = self.pairs[row]
            pair.in_ring = False
            if pair.has_failed or pair.next == pair.end or not self._is_window_open(pair):
                continue
            earliest_ps = self._earliest_send_ps(pair)
            if earliest_ps > self.now_ps:
                self._schedule_pace(row, earliest_ps)
                continue
            self._send_data(row, pair)
            return True
        return False

    def _send_data(self, number: int, pair: Pair) -> None:
        sequence, message = pair.next, pair.message_of(pair.next)
        payload_bytes = pair.payload_bytes(sequence, self.settings["mtu_bytes"])
        wire_bytes = max(payload_bytes + self.settings["wire_overhead_bytes"], self.settings["ack_bytes"])
        if sequence < pair.highest:
            message.resent += 1
        elif sequence == message.first:
            message.times["start_ps"] = self.now_ps
        pair.highest = max(pair.highest, sequence + 1)
        pair.next += 1
        pair.in_flight_bytes += payload_bytes
        pair.last_send_ps, pair.last_wire_bytes = self.now_ps, wire_bytes
        packet = Packet("data", number, sequence, wire_bytes, self.now_ps, self._path(number, 0)[1:])
        self.num_live += 1
        self._transmit(pair.port, packet)
        if pair.timeout_ps == NEVER:
            pair.timeout_ps = self._next_timeout_ps(pair)
            self._arm_timer(number, pair.timeout_ps)
        self._call_law(number, "on_send", self.now_ps, payload_bytes)
        if pair.next == pair.end or not self._is_window_open(pair):
            return
        earliest_ps = self._earliest_send_ps(pair)
        if earliest_ps <= self.ports[pair.port].busy_until_ps:
            pair.in_ring = True
            self.ports[pair.port].ring.append(number)
        else:
            self._schedule_pace(number, earliest_ps)

    def _acknowledge(self, number: int, pair: Pair, up_to: int) -> int:
        mtu_bytes = self.settings["mtu_bytes"]
        acked_bytes = sum(pair.payload_bytes(sequence, mtu_bytes) for sequence in range(pair.oldest, up_to))
        for message in pair.messages:
            if pair.oldest < message.end <= up_to:
                message.times["acknowledged_ps"] = self.now_ps
                pair.remaining -= 1
        pair.oldest = up_to
        pair.timeouts = 0
        pair.in_flight_bytes = pair.in_flight_bytes - acked_bytes if pair.next >= up_to else 0
        pair.next = max(pair.next, up_to)
        is_idle = pair.next == pair.oldest
        pair.timeout_ps = NEVER if is_idle else self._next_timeout_ps(pair)
        self._arm_timer(number, pair.timeout_ps)
        return acked_bytes

    def _next_timeout_ps(self, pair: Pair) -> int:
        wait_ps = int(self.inputs.retransmission_wait[pair.timeouts])
        return NEVER if wait_ps == NEVER else self.now_ps + wait_ps

    def _rewind(self, pair: Pair) -> None:
        pair.next, pair.in_flight_bytes = pair.oldest, 0

    # Receivers

    def _deliver(self, packet: Packet) -> None:
        if packet.kind == "data":
            self._receive_data(packet)
            return
        self.num_live -= 1
        pair = self.pairs[packet.pair]
        if pair.has_failed or pair.remaining == 0:
            return
        if packet.kind == "ack":
            self._on_acknowledgement(packet, pair)
        elif packet.kind == "nak":
            if packet.sequence > pair.oldest:
                self._acknowledge(packet.pair, pair, packet.sequence)
            if packet.sequence == pair.oldest:
                self._rewind(pair)
            self._call_law(packet.pair, "on_nack", self.now_ps)
        elif self.settings["cnp_delay_ps"] > 0:
            pair.notifications.append(self.now_ps + self.settings["cnp_delay_ps"])
            self._arm_timer(packet.pair, pair.notifications[-1])
            return
        else:
            self._notify(packet.pair, pair)
        self._resume(packet.pair)

    def _notify(self, number: int, pair: Pair) -> None:
        pair.message_of(pair.oldest).cnps += 1
        self._call_law(number, "on_cnp", self.now_ps)

    def _on_acknowledgement(self, packet: Packet, pair: Pair) -> None:
        pair.rtt_ps = self.now_ps - packet.sent_ps
        acked_bytes = 0
        if packet.sequence >= pair.oldest:
            acked_bytes = self._acknowledge(packet.pair, pair, packet.sequence + 1)
        self._call_law(
            packet.pair,
            "on_ack",
            self.now_ps,
            acked_bytes,
            pair.rtt_ps,
            self.settings["endpoint_delay_ps"],
            int(pair.flow["num_hops"][0]),
            int(packet.is_marked),
            None,
        )

    def _receive_data(self, packet: Packet) -> None:
        pair = self.pairs[packet.pair]
        if packet.is_marked:
            pair.has_mark = True
            if "on_cnp" in self.law_events and self.now_ps >= pair.cnp_allowed_ps:
                pair.cnp_allowed_ps = self.now_ps + self.settings["cnp_interval_ps"]
                self.num_live += 1
                self._reply(packet.pair, "cnp", 0, self.now_ps)
        if self.settings["endpoint_delay_ps"] > 0:
            delay_ps = self.settings["endpoint_delay_ps"]
            self._push_packet(self.now_ps + delay_ps, Kind.REPLY, packet.pair, packet)
        else:
            self._answer(packet)

    def _on_reply(self, _pair: int, number: int) -> None:
        self._answer(self.packets.pop(number))

    def _answer(self, packet: Packet) -> None:
        pair = self.pairs[packet.pair]
        if packet.sequence == pair.expected:
            pair.expected += 1
            pair.unanswered += 1
            pair.has_sent_nak = False
            message = pair.message_of(packet.sequence)
            is_message_end = pair.expected == message.end
            if is_message_end:
                self._finish(message)
            if is_message_end or pair.unanswered >= self.settings["ack_every_packets"]:
                self._reply(packet.pair, "ack", packet.sequence, packet.sent_ps)
            else:
                self.num_live -= 1
        elif packet.sequence < pair.expected:
            self._reply(packet.pair, "ack", pair.expected - 1, packet.sent_ps)
        elif pair.has_sent_nak:
            self.num_live -= 1
        else:
            pair.has_sent_nak = True
            self._reply(packet.pair, "nak", pair.expected, packet.sent_ps)

    def _reply(self, number: int, kind: str, sequence: int, sent_ps: int) -> None:
        pair = self.pairs[number]
        path = self._path(number, 1)
        reply = Packet(kind, number, sequence, self.settings["ack_bytes"], sent_ps, path[1:])
        if kind == "ack":
            reply.is_marked, pair.has_mark, pair.unanswered = pair.has_mark, False, 0
        self._enqueue(path[0], reply)

    # Laws and timers

    def _call_law(self, number: int, event: str, *arguments: object) -> None:
        if event not in self.law_events:
            return
        flow = self.pairs[number].flow
        status = self.law.call(event, flow, *arguments)
        assert status == Status.OK, f"the law answered {status.name}"
        if "on_timer" in self.law_events:
            self._arm_timer(number, int(flow["deadline_ps"].min()))

    def _arm_timer(self, number: int, time_ps: int) -> None:
        if time_ps < self.pairs[number].timer_event_ps:
            self.pairs[number].timer_event_ps = time_ps
            self._push(time_ps, Kind.TIMER, number)

    def _on_timer(self, number: int, _payload: int) -> None:
        pair = self.pairs[number]
        if pair.timer_event_ps != self.now_ps:
            return
        pair.timer_event_ps = NEVER
        while pair.notifications and pair.notifications[0] <= self.now_ps:
            pair.notifications.popleft()
            if pair.remaining > 0 and not pair.has_failed:
                self._notify(number, pair)
                self._resume(number)
        if pair.notifications:
            self._arm_timer(number, pair.notifications[0])
        if pair.remaining == 0 or pair.has_failed:
            return
        if "on_timer" in self.law_events:
            deadline_ps = pair.flow["deadline_ps"][0]
            due = [timer for timer in range(NUM_TIMERS) if deadline_ps[timer] == self.now_ps]
            deadline_ps[due] = NEVER
            for timer in due:
                self._call_law(number, "on_timer", self.now_ps, timer)
            self._arm_timer(number, int(pair.flow["deadline_ps"].min()))
        if pair.timeout_ps == self.now_ps:
            pair.timeout_ps = NEVER
            pair.timeouts += 1
            if pair.timeouts == len(self.inputs.retransmission_wait):
                pair.has_failed = True
            else:
                self._rewind(pair)
                self._call_law(number, "on_timeout", self.now_ps)
        self._arm_timer(number, pair.timeout_ps)
        self._resume(number)
