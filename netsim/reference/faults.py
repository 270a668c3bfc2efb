"""Faults: what changes at ports, and when.

Names, intervals and the routes around a fault are worked out in netsim/faults and topology; here is only a list of
changes in the order of time.
"""

from fabrictune.netsim.faults.timeline import Effect
from fabrictune.netsim.reference.forwarding import Forwarding
from fabrictune.netsim.reference.ports import Port
from fabrictune.netsim.reference.run import ClockEvent, EventKind, RunState


class Faults:
    """The changes still to come."""

    def __init__(self, run: RunState, forwarding: Forwarding) -> None:
        self.run, self.forwarding = run, forwarding
        self.next_change = 0
        self._schedule()

    def _schedule(self) -> None:
        if self.next_change < len(self.run.columns["fault_time"]):
            self.run.schedule(self.run.columns["fault_time"][self.next_change], EventKind.CLOCK, ClockEvent.FAULT)

    def on_change(self) -> None:
        """Change ports as of now; what waits at links that are down is lost when all have changed."""
        columns = self.run.columns
        rows = [row for row, time_ps in enumerate(columns["fault_time"]) if time_ps == self.run.now_ps]
        ports = [self.forwarding.ports[columns["fault_port"][row]] for row in rows]
        effects = [Effect(columns["fault_effect"][row]) for row in rows]
        for row, port, effect in zip(rows, ports, effects, strict=True):
            self._apply(effect, port, columns["fault_value"][row])
        for port, effect in zip(ports, effects, strict=True):
            if effect == Effect.DOWN and port.health.is_down:
                self.forwarding.clear(port)
        self.next_change = rows[-1] + 1
        self._schedule()

    def _apply(self, effect: Effect, port: Port, value: float) -> None:
        if effect == Effect.DOWN:
            port.health.is_down = value > 0
            port.health.num_downs += port.health.is_down
            if port.health.is_down:
                self.forwarding.buffers.forget_pauses(port)
        elif effect == Effect.LOSS:
            port.health.loss_fraction = value
        elif effect == Effect.BYTE_ERRORS:
            port.health.byte_arrives = value
        else:
            port.rate_bps = int(value)
