"""What the reference engine makes of faults and of new paths."""

from collections.abc import Mapping
from types import ModuleType

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.engine_inputs.limits import NO_ROUTE, PATH_END
from fabrictune.netsim.faults.timeline import Effect
from fabrictune.netsim.reference.receiving import Receiving
from fabrictune.netsim.reference.state import ClockEvent, Kind


class Faulting(Receiving):
    """Changes ports at the times of faults, and paths when routing has converged."""

    def __init__(self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None = None) -> None:
        super().__init__(inputs, law, law_settings)
        self.next_change = 0
        self._schedule_fault()
        self._schedule_reroute()

    def _schedule_fault(self) -> None:
        if self.next_change < len(self.inputs["fault_time"]):
            self._push(int(self.inputs["fault_time"][self.next_change]), Kind.CLOCK, ClockEvent.FAULT)

    def _schedule_reroute(self) -> None:
        if self.epochs.next < len(self.inputs["epoch_time"]):
            self._push(int(self.inputs["epoch_time"][self.epochs.next]), Kind.CLOCK, ClockEvent.REROUTE)

    def _on_fault(self) -> None:
        columns = self.inputs
        now = [row for row, time_ps in enumerate(columns["fault_time"]) if time_ps == self.now_ps]
        for row in now:
            self._apply(
                Effect(columns["fault_effect"][row]), int(columns["fault_port"][row]), columns["fault_value"][row]
            )
        for row in now:
            if columns["fault_effect"][row] == Effect.DOWN:
                self._clear(int(columns["fault_port"][row]))
        self.next_change = now[-1] + 1
        self._schedule_fault()

    def _apply(self, effect: Effect, number: int, value: float) -> None:
        health = self.health[number]
        if effect == Effect.DOWN:
            health.is_down = value > 0
            health.num_downs += health.is_down
            if health.is_down:
                self._forget_pauses(number)
        elif effect == Effect.LOSS:
            health.loss_fraction = float(value)
        elif effect == Effect.BYTE_ERRORS:
            health.byte_arrives = float(value)
        else:
            self.ports[number].rate_bps = int(value)

    def _forget_pauses(self, number: int) -> None:
        port = self.ports[number]
        if port.is_paused:
            port.counts["paused_ps"] += self.now_ps - port.paused_since_ps
        if port.pauses_sender:
            port.pause_frames += 1
        port.is_paused = port.pauses_sender = False
        self.health[number].lost_pause_frames = port.pause_frames
        for output, queue in zip(self.outputs[number], self.inputs_of[number], strict=True):
            if output.is_paused:
                output.counts["paused_ps"] += self.now_ps - output.paused_since_ps
            output.is_paused, output.pause_ends_ps = False, NEVER
            queue.pauses_sender, queue.refresh_ps = False, NEVER
            if not output.is_storm:
                output.look_ps = NEVER

    def _clear(self, number: int) -> None:
        port = self.ports[number]
        if not self.health[number].is_down:
            return
        while port.control:
            port.control.popleft()
            self._lose(number, "link_down")
        while port.data:
            packet = port.data.popleft()
            port.queued_bytes -= packet.wire_bytes
            self._leave_buffer(number, packet)
            self._lose(number, "link_down")
        for priority, output in enumerate(self.outputs[number]):
            while output.packets:
                self._take_out(number, priority)
                self._lose(number, "link_down")
        if self.inputs["port_is_host"][number]:
            self._kick(number)

    def _on_reroute(self) -> None:
        for flow in self.epochs.begin_next():
            if flow % 2 == 0:
                self._follow_path(flow // 2)
        self.path_chooser.path_set = self.epochs.path_set
        self._schedule_reroute()

    def _follow_path(self, number: int) -> None:
        pair, path = self.pairs[number], self._path(number, 0)
        if pair.port != path[0]:
            if pair.in_ring:
                self._ring_of(pair.port, number).remove(number)
                pair.in_ring = False
            pair.port = path[0]
            self._resume(number)
        pair.flow["num_hops"] = sum(port not in (NO_ROUTE, PATH_END) for port in path)
