"""Pauses by priority in the reference engine: frames that take time, lengths, and the watchdog.

Where a run has no priorities, everything here is left to Forwarding.
"""

from enum import IntEnum

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.reference.forwarding import serialization_ps
from fabrictune.netsim.reference.queueing import Queueing
from fabrictune.netsim.reference.state import Kind

QUANTUM_BYTES = 64


class PauseEvent(IntEnum):
    """What happens to a port's priority, in the order in which it happens at one instant."""

    END = 0
    BEGIN = 1
    EXPIRE = 2
    REFRESH = 3
    WATCH = 4


class Pausing(Queueing):
    """Pauses and resumes priorities of ports."""

    def __init__(self, inputs: EngineInputs) -> None:
        super().__init__(inputs)
        self.num_pause_events = 0

    def _pause_length_ps(self, number: int) -> int:
        return serialization_ps(self.settings["pause_quanta"] * QUANTUM_BYTES, self.ports[number].rate_bps)

    def _schedule_pause_event(self, time_ps: int, number: int, event: PauseEvent, priority: int) -> None:
        self.num_pause_events += event != PauseEvent.WATCH
        self._push(time_ps, Kind.PAUSE_FRAME, number, self.health[number].num_downs << 6 | event << 3 | priority)

    def _on_pause_frame(self, number: int, frame: int) -> None:
        if not self.num_priorities:
            super()._on_pause_frame(number, frame)
            return
        event, priority = PauseEvent(frame >> 3 & 7), frame & 7
        output = self.outputs[number][priority]
        self.num_pause_events -= event != PauseEvent.WATCH
        if frame >> 6 != self.health[number].num_downs and event != PauseEvent.WATCH:
            return
        if event in (PauseEvent.END, PauseEvent.BEGIN):
            output.counts["pause_frames_received"] += 1
        if event == PauseEvent.BEGIN:
            self._begin_pause(number, priority)
        elif event == PauseEvent.END or (event == PauseEvent.EXPIRE and output.pause_ends_ps == self.now_ps):
            self._end_pause(number, priority)
        elif event == PauseEvent.REFRESH and self.inputs_of[number][priority].refresh_ps == self.now_ps:
            self._refresh_pause(number, priority)
        elif event == PauseEvent.WATCH and output.look_ps == self.now_ps:
            self._look_at_storm(number, priority)

    def _send_priority_pause(self, number: int, priority: int, *, is_pause: bool) -> None:
        peer = int(self.inputs["port_peer"][number])
        carrier, queue = self.ports[peer], self.inputs_of[number][priority]
        carrier.busy_until_ps = max(self.now_ps, carrier.busy_until_ps)
        carrier.busy_until_ps += serialization_ps(self.settings["pause_frame_bytes"], carrier.rate_bps)
        self.outputs[peer][priority].counts["pause_frames_sent"] += 1
        obeyed_ps = carrier.busy_until_ps + carrier.delay_ps + int(self.inputs["pause_response"][number])
        self._schedule_pause_event(obeyed_ps, number, PauseEvent.BEGIN if is_pause else PauseEvent.END, priority)
        queue.pauses_sender, queue.refresh_ps = is_pause, NEVER
        if is_pause and self.settings["pause_quanta"] and self.settings["is_pause_refreshed"]:
            queue.refresh_ps = self.now_ps + self._pause_length_ps(number) // 2
            self._schedule_pause_event(queue.refresh_ps, number, PauseEvent.REFRESH, priority)

    def _refresh_pause(self, number: int, priority: int) -> None:
        silent_ps = self.now_ps - self.last_transmission_ps
        if len(self.events) == self.num_pause_events and silent_ps > self.settings["pause_patience_ps"]:
            self.outcome = "stalled"
        else:
            self._send_priority_pause(number, priority, is_pause=True)

    def _begin_pause(self, number: int, priority: int) -> None:
        port, output = self.ports[number], self.outputs[number][priority]
        if self.settings["pause_quanta"]:
            output.pause_ends_ps = self.now_ps + self._pause_length_ps(number)
            self._schedule_pause_event(output.pause_ends_ps, number, PauseEvent.EXPIRE, priority)
        output.last_pause_ps = self.now_ps
        if output.is_paused:
            return
        output.is_paused, output.paused_since_ps = True, self.now_ps
        output.counts["pauses"] += 1
        if not port.is_paused:
            port.is_paused, port.paused_since_ps = True, self.now_ps
            port.counts["pauses"] += 1
        self._watch(number, priority)

    def _end_pause(self, number: int, priority: int) -> None:
        port, output = self.ports[number], self.outputs[number][priority]
        if not output.is_paused:
            return
        output.is_paused, output.pause_ends_ps = False, NEVER
        output.counts["paused_ps"] += self.now_ps - output.paused_since_ps
        if not output.is_storm:
            output.look_ps = NEVER
        if not any(other.is_paused for other in self.outputs[number]):
            port.is_paused = False
            port.counts["paused_ps"] += self.now_ps - port.paused_since_ps
        self._kick(number)

    def _watch(self, number: int, priority: int) -> None:
        output = self.outputs[number][priority]
        if self.settings["watchdog_detect_ps"] == NEVER or self.inputs["port_is_host"][number] or output.is_storm:
            return
        if output.is_paused and output.packets and output.look_ps == NEVER:
            output.look_ps = self.now_ps + self.settings["watchdog_detect_ps"]
            self._schedule_pause_event(output.look_ps, number, PauseEvent.WATCH, priority)

    def _look_at_storm(self, number: int, priority: int) -> None:
        output, restore_ps = self.outputs[number][priority], self.settings["watchdog_restore_ps"]
        output.look_ps = NEVER
        if output.is_storm and output.last_pause_ps + restore_ps <= self.now_ps:
            output.is_storm = False
            self._watch(number, priority)
            return
        output.look_ps = (output.last_pause_ps if output.is_storm else self.now_ps) + restore_ps
        self._schedule_pause_event(output.look_ps, number, PauseEvent.WATCH, priority)
        if output.is_storm:
            return
        output.is_storm = True
        output.counts["pause_storms"] += 1
        if self.settings["watchdog_drops"]:
            while output.packets:
                packet = self._take_out(number, priority)
                assert packet.ingress is not None, "watchdogs are in switches only"
                output.counts["dropped_packets"] += 1
                self._drop(packet.ingress)
        else:
            self._kick(number)
