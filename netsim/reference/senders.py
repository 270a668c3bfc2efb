"""Senders: the sending end of each queue pair.

A sender sends when its NIC's port takes its turn at it, within the window and the pace that its law sets. Answers,
losses and timers reach the law, and change what is sent next. One timer event matters, that of the earliest deadline;
one that moves earlier schedules another, and the older one finds itself overtaken.

Source: InfiniBand Architecture Specification 1.4, section 9.7, and 9.7.5.2.8 for receivers that are not ready; Swift
(SIGCOMM'20), 3.2, for the split of a round trip into fabric and endpoint.
"""

import math
from collections import deque

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.engine_inputs.limits import NO_ROUTE
from fabrictune.netsim.reference.credits import Credit
from fabrictune.netsim.reference.entropy import EntropyCache
from fabrictune.netsim.reference.forwarding import Forwarding
from fabrictune.netsim.reference.laws import FlowLaw
from fabrictune.netsim.reference.loss_recovery import GoBackN, SelectiveRepeat
from fabrictune.netsim.reference.ports import PS_BITS_PER_BYTE, Packet, priority_of
from fabrictune.netsim.reference.run import EventKind, RunState
from fabrictune.netsim.reference.transfers import ReadyTransfers, Transfer

LONGEST_GAP_PS = 1e17


class Sender:
    """The sending end of one queue pair."""

    def __init__(
        self, run: RunState, forwarding: Forwarding, messages: ReadyTransfers, law: FlowLaw, number: int
    ) -> None:
        self.run, self.forwarding, self.messages, self.law, self.number = run, forwarding, messages, law, number
        self.recovery = _loss_recovery(run, messages, number)
        self.priority = priority_of(run, "data", number)
        self.port = forwarding.ports[forwarding.routes.path(number, 0)[0]]
        self.entropy = EntropyCache(run, number)
        self.credit = Credit(run, number)
        self.rtt_ps = law.base_rtt_ps
        self.highest = 0  # one behind the highest packet sent so far
        self.last_send_ps = -NEVER // 2
        self.last_wire_bytes = 0
        self.in_ring = self.has_failed = False
        self.pace_event_ps = self.timer_event_ps = self.timeout_ps = NEVER
        self.timeouts = self.rnr_naks = 0  # since something was acknowledged
        self.rnr_wait_until_ps = 0
        self.notifications: deque[int] = deque()  # when those still being handled reach the law

    @property
    def is_done(self) -> bool:
        """Whether nothing that happens changes it any more."""
        return self.has_failed or self.messages.num_open == 0

    @property
    def has_work(self) -> bool:
        """Whether a ready transfer is not acknowledged and may still be."""
        return self.recovery.oldest < self.messages.end and not self.has_failed

    def append(self, transfer: Transfer) -> None:
        """Take a transfer that is ready."""
        if self.has_failed:
            return
        self.messages.append(transfer)
        if len(self.messages.transfers) == 1:
            self._call_law("on_start", self.run.now_ps)
        self._resume()

    def follow_path(self) -> None:
        """Go on along the path that is now in force."""
        path = self.forwarding.routes.path(self.number, 0)
        port = self.forwarding.ports[path[0]]
        if self.port is not port:
            if self.in_ring:
                self.port.queues[self.priority].ring.remove(self.take_turn)
                self.in_ring = False
            self.port = port
            self._resume()
        self.law.flow["num_hops"] = len(path) - path.count(NO_ROUTE)

    def _may_send(self) -> bool:
        """Return whether there is something to send and the window has room; one packet always has."""
        sequence = self.recovery.next_sequence()
        if sequence is None or self.credit.is_used_up:
            return False
        if self.recovery.is_idle:
            return True
        in_flight_bytes = self.recovery.in_flight_bytes + self.messages.payload_bytes(sequence)
        return in_flight_bytes <= self.law.cwnd_bytes

    def _earliest_send_ps(self) -> int:
        """Return when pace, a window below one packet and a receiver that was not ready allow the next packet."""
        rate_bps, cwnd_bytes, mtu_bytes = self.law.rate_bps, self.law.cwnd_bytes, self.run.settings.mtu_bytes
        gap_ps = int(min(self.last_wire_bytes * PS_BITS_PER_BYTE / rate_bps, LONGEST_GAP_PS))
        if cwnd_bytes < mtu_bytes:
            gap_ps = max(gap_ps, int(min(math.ceil(self.rtt_ps * (mtu_bytes / cwnd_bytes)), LONGEST_GAP_PS)))
        return max(self.last_send_ps + gap_ps, self.rnr_wait_until_ps)

    def _resume(self) -> None:
        """Wait for a turn at the NIC as soon as window and pace allow."""
        if self.in_ring or self.has_failed:
            return
        if not self._may_send():
            self._ask_for_credit()
            return
        earliest_ps = self._earliest_send_ps()
        if self.pace_event_ps <= earliest_ps:
            return
        if earliest_ps > max(self.run.now_ps, self.port.busy_until_ps):
            self._schedule_pace(earliest_ps)
        else:
            self._join_ring()
            self.forwarding.kick(self.port)

    def _join_ring(self) -> None:
        self.in_ring = True
        self.port.queues[self.priority].ring.append(self.take_turn)

    def _schedule_pace(self, time_ps: int) -> None:
        if time_ps < self.pace_event_ps:
            self.pace_event_ps = time_ps
            self.run.schedule(time_ps, EventKind.PACE, self.number)

    def on_pace(self) -> None:
        """Go on when the pace allows."""
        if self.pace_event_ps == self.run.now_ps:
            self.pace_event_ps = NEVER
            self._resume()

    def take_turn(self) -> None:
        """Send a packet if window and pace still allow it."""
        self.in_ring = False
        if self.has_failed or not self._may_send():
            return
        earliest_ps = self._earliest_send_ps()
        if earliest_ps > self.run.now_ps:
            self._schedule_pace(earliest_ps)
        else:
            self._send()

    def _send(self) -> None:
        sequence = self.recovery.next_sequence()
        assert sequence is not None, "asked before"
        payload_bytes = self.messages.payload_bytes(sequence)
        packet = self._make_packet(sequence, payload_bytes)
        self._count(sequence)
        self.recovery.on_sent(sequence, self.run.now_ps)
        self.credit.credit_bytes -= packet.wire_bytes
        packet.credit_bytes = self.credit.target_bytes = self._wanted_target()
        self.last_send_ps, self.last_wire_bytes = self.run.now_ps, packet.wire_bytes
        self.run.num_live += 1
        self.forwarding.transmit(self.port, packet)
        if self.timeout_ps == NEVER:
            self._set_timeout()
        self._call_law("on_send", self.run.now_ps, payload_bytes)
        packet.wants_ack = not self._may_send()
        if self._may_send():
            earliest_ps = self._earliest_send_ps()
            if earliest_ps <= self.port.busy_until_ps:
                self._join_ring()
            else:
                self._schedule_pace(earliest_ps)

    def _make_packet(self, sequence: int, payload_bytes: int) -> Packet:
        path, wire_bytes = self.forwarding.routes.path(self.number, 0), self._wire_bytes(payload_bytes)
        packet = Packet("data", self.number, sequence, wire_bytes, self.run.now_ps, path[1:], self.priority)
        packet.entropy = self.entropy.next_value()
        return packet

    def _wire_bytes(self, payload_bytes: int) -> int:
        settings = self.run.settings
        return int(max(payload_bytes + settings.wire_overhead_bytes, settings.ack_bytes))

    @property
    def _lacks_credit(self) -> bool:
        return self.credit.is_used_up and self.recovery.next_sequence() is not None

    def _wanted_target(self) -> int:
        if self.credit.window_bytes is None:
            return 0
        backlog = map(self.messages.payload_bytes, self.recovery.waiting())
        return self.credit.wanted_target(sum(map(self._wire_bytes, backlog)), self.law.cwnd_bytes)

    def _ask_for_credit(self) -> None:
        """Ask for what no packet has asked for, where there is no credit for one."""
        if not self._lacks_credit or self._wanted_target() == self.credit.target_bytes:
            return
        self.credit.target_bytes = self._wanted_target()
        run, path = self.run, self.forwarding.routes.path(self.number, 0)
        priority = priority_of(run, "credit-request", self.number)
        request = Packet("credit-request", self.number, 0, run.settings.ack_bytes, run.now_ps, path[1:], priority)
        request.credit_bytes = self.credit.target_bytes
        run.num_live += 1
        if self.timeout_ps == NEVER:
            self._set_timeout()
        self.forwarding.enqueue(self.port, request)

    def _on_credit(self, granted_bytes: int) -> None:
        if self.credit.take(granted_bytes):
            if self.recovery.is_idle:
                self._restart_timeout()
            self._resume()

    def _count(self, sequence: int) -> None:
        transfer = self.messages.of(sequence)
        if sequence < self.highest:
            transfer.resent += 1
        elif sequence == transfer.first:
            transfer.times["start_ps"] = self.run.now_ps
        self.highest = max(self.highest, sequence + 1)

    def on_answer(self, packet: Packet) -> None:
        """Take what the receiver has answered."""
        self.run.num_live -= 1
        if packet.kind == "cnp":
            self._take_notification()
        elif self.is_done:
            return
        elif packet.kind == "ack":
            self._on_acknowledgement(packet)
        elif packet.kind == "credit":
            self._on_credit(packet.credit_bytes)
        elif packet.kind == "nak":
            self._on_nak(packet.sequence)
        elif packet.kind == "trim-nack":
            self._on_trim_nack(packet)
        else:
            self._on_rnr_nak(packet.sequence)

    def _on_acknowledgement(self, packet: Packet) -> None:
        self.rtt_ps = self.run.now_ps - packet.sent_ps
        self.entropy.learn_from(packet)
        transfer = self.messages.of(self.recovery.oldest)
        transfer.round_trips += 1
        transfer.rtt_ps += self.rtt_ps
        transfer.endpoint_ps += packet.endpoint_ps
        acknowledged = self.recovery.on_acknowledgement(packet, self.run.now_ps)
        self._restart_timeout_after(acknowledged)
        acked_bytes = sum(map(self.messages.payload_bytes, acknowledged))
        self._call_law("on_ack", self.run.now_ps, acked_bytes, self.rtt_ps, *self.law.signals(packet))
        self._detect_losses()
        self._resume()

    def _on_nak(self, expected: int) -> None:
        """Send again from the packet on that the receiver expects."""
        self._restart_timeout_after(self.recovery.acknowledge_below(expected))
        if expected == self.recovery.oldest:
            self.recovery.rewind()
        self._call_law("on_nack", self.run.now_ps)
        self._resume()

    def _on_trim_nack(self, packet: Packet) -> None:
        """Send a trimmed packet again, unless a later sending of it is on its way."""
        self.entropy.learn_from(packet)
        if not self.recovery.take_trimmed(packet):
            return
        self._restart_timeout()
        trimmed_bytes = self.messages.payload_bytes(packet.sequence)
        rtt_ps = self.run.now_ps - packet.sent_ps
        if not self._call_law("on_trim", self.run.now_ps, trimmed_bytes, rtt_ps, int(packet.is_last_hop)):
            self._call_law("on_nack", self.run.now_ps)
        self._resume()

    def _on_rnr_nak(self, expected: int) -> None:
        """Wait for the RNR timer and send again; fail after too many RNR NAKs."""
        settings = self.run.settings
        if expected < self.recovery.oldest:
            return
        self._restart_timeout_after(self.recovery.acknowledge_below(expected))
        if settings.rnr_retries_are_limited and self.rnr_naks == settings.rnr_retries:
            self.has_failed = True
            return
        self.rnr_naks += 1
        self.rnr_wait_until_ps = self.run.now_ps + settings.rnr_wait_ps
        self.recovery.rewind()
        self.timeout_ps = NEVER
        self._resume()

    def _restart_timeout_after(self, acknowledged: list[int]) -> None:
        if acknowledged:
            self._restart_timeout()

    def _restart_timeout(self) -> None:
        self.timeouts = self.rnr_naks = 0
        self.timeout_ps = NEVER
        if not self.recovery.is_idle or self._lacks_credit:
            self._set_timeout()

    def _set_timeout(self) -> None:
        wait_ps = self.run.columns["retransmission_wait"][self.timeouts]
        self.timeout_ps = NEVER if wait_ps == NEVER else self.run.now_ps + wait_ps
        self._arm_timer(self.timeout_ps)

    def _detect_losses(self) -> None:
        has_lost = self.recovery.detect_losses(self.run.now_ps)
        self._arm_timer(self.recovery.deadline_ps)
        if has_lost:
            self._call_law("on_nack", self.run.now_ps)

    def _arm_timer(self, time_ps: int) -> None:
        if time_ps < self.timer_event_ps:
            self.timer_event_ps = time_ps
            self.run.schedule(time_ps, EventKind.TIMER, self.number)

    def on_timer(self) -> None:
        """Do what is due: notifications, the law's timers, losses by time, the retransmission timeout."""
        if self.timer_event_ps != self.run.now_ps:
            return
        self.timer_event_ps = NEVER
        self._call_due_notifications()
        if self.is_done:
            return
        for timer in self.law.take_due_timers(self.run.now_ps):
            self._call_law("on_timer", self.run.now_ps, timer)
        self._arm_timer(self.law.deadline_ps)
        if self.recovery.deadline_ps <= self.run.now_ps:
            self._detect_losses()
        if self.timeout_ps == self.run.now_ps:
            self._on_timeout()
        self._arm_timer(min(self.timeout_ps, self.recovery.deadline_ps))
        self._resume()

    def _on_timeout(self) -> None:
        """Send again, since nothing was acknowledged for as long as a queue pair waits; fail after the last wait."""
        self.timeout_ps = NEVER
        self.timeouts += 1
        if self.timeouts == len(self.run.columns["retransmission_wait"]):
            self.has_failed = True
            return
        self.entropy.freeze()
        self.recovery.rewind()
        self.credit.forget_target()
        self._call_law("on_timeout", self.run.now_ps)

    def _take_notification(self) -> None:
        """Let a congestion notification reach the law once the NIC has handled it."""
        delay_ps = self.run.settings.cnp_delay_ps
        if delay_ps == 0:
            self._on_notification()
        else:
            self.notifications.append(self.run.now_ps + delay_ps)
            self._arm_timer(self.notifications[-1])

    def _call_due_notifications(self) -> None:
        while self.notifications and self.notifications[0] <= self.run.now_ps:
            self.notifications.popleft()
            self._on_notification()
        if self.notifications:
            self._arm_timer(self.notifications[0])

    def _on_notification(self) -> None:
        if not self.is_done:
            self.messages.of(self.recovery.oldest).cnps += 1
            self._call_law("on_cnp", self.run.now_ps)
            self._resume()

    def _call_law(self, event: str, *arguments: object) -> bool:
        is_handled = self.law.call(event, *arguments)
        if is_handled:
            self._arm_timer(self.law.deadline_ps)
        return is_handled


def _loss_recovery(run: RunState, messages: ReadyTransfers, number: int) -> GoBackN | SelectiveRepeat:
    reorder_windows_ps = run.columns["reorder_window"]
    if not reorder_windows_ps:
        return GoBackN(messages)
    return SelectiveRepeat(messages, run.settings.window_packets, reorder_windows_ps[number])
