"""Laws in the reference engine: handlers and timers of each queue pair."""

from abc import abstractmethod
from collections.abc import Mapping
from types import ModuleType

from fabrictune.cc.interface import NEVER, NUM_TIMERS, Status
from fabrictune.cc.interpreter import InterpretedLaw
from fabrictune.cc.law_rules import handlers, reads_telemetry
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.reference.pausing import Pausing
from fabrictune.netsim.reference.receive_queue import ReceiveQueue
from fabrictune.netsim.reference.state import Kind, Pair


class Laws(Pausing):
    """Calls the law's handlers, and keeps each queue pair's deadlines."""

    def __init__(self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None = None) -> None:
        super().__init__(inputs)
        self.law = InterpretedLaw(law, law_settings)
        self.law_events = frozenset(handlers(law))
        self.uses_telemetry = reads_telemetry(law)
        self.pairs = [
            Pair(
                self._path(pair, 0)[0], inputs["flow"][pair : pair + 1].copy(), int(inputs["flow"]["base_rtt_ps"][pair])
            )
            for pair in range(len(inputs["flow"]))
        ]
        if self.settings["num_receives"]:
            for pair in self.pairs:
                pair.receives = ReceiveQueue(self.settings["num_receives"], self.settings["replenish_ps"])
        for pair, window_ps in zip(self.pairs, inputs["reorder_window"], strict=False):
            pair.reorder_window_ps = int(window_ps)

    @abstractmethod
    def _resume(self, number: int) -> None:
        """Let a queue pair send as soon as its transfers, window and pace allow."""

    @abstractmethod
    def _on_retransmission_timeout(self, number: int, pair: Pair) -> None:
        """Nothing was acknowledged for as long as a queue pair waits."""

    @abstractmethod
    def _on_reorder_deadline(self, number: int, pair: Pair) -> None:
        """The reorder window of a packet may have passed."""

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
        self._call_due_notifications(number, pair)
        if pair.remaining == 0 or pair.has_failed:
            return
        if "on_timer" in self.law_events:
            self._call_due_timers(number, pair)
        self._on_reorder_deadline(number, pair)
        if pair.timeout_ps == self.now_ps:
            self._on_retransmission_timeout(number, pair)
        self._arm_timer(number, min(pair.timeout_ps, pair.reorder_deadline_ps))
        self._resume(number)

    def _call_due_timers(self, number: int, pair: Pair) -> None:
        deadline_ps = pair.flow["deadline_ps"][0]
        due = [timer for timer in range(NUM_TIMERS) if deadline_ps[timer] == self.now_ps]
        deadline_ps[due] = NEVER
        for timer in due:
            self._call_law(number, "on_timer", self.now_ps, timer)
        self._arm_timer(number, int(pair.flow["deadline_ps"].min()))

    def _take_notification(self, number: int, pair: Pair) -> None:
        if self.settings["cnp_delay_ps"] == 0:
            self._on_congestion_notification(number, pair)
            return
        pair.notifications.append(self.now_ps + self.settings["cnp_delay_ps"])
        self._arm_timer(number, pair.notifications[-1])

    def _call_due_notifications(self, number: int, pair: Pair) -> None:
        while pair.notifications and pair.notifications[0] <= self.now_ps:
            pair.notifications.popleft()
            self._on_congestion_notification(number, pair)
        if pair.notifications:
            self._arm_timer(number, pair.notifications[0])

    def _on_congestion_notification(self, number: int, pair: Pair) -> None:
        if pair.has_failed or pair.remaining == 0:
            return
        pair.message_of(pair.oldest).cnps += 1
        self._call_law(number, "on_cnp", self.now_ps)
        self._resume(number)
