"""Congestion-control laws at work: each queue pair's record, and the handlers called on it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.cc.interface import NEVER, NUM_TIMERS, TELEMETRY_DTYPE, Status
from fabrictune.cc.interpreter import InterpretedLaw
from fabrictune.netsim.reference.ports import Packet


@dataclass(frozen=True)
class FlowLaw:
    """A law and one queue pair's record of it."""

    law: InterpretedLaw
    events: frozenset[str]  # that the law handles
    uses_telemetry: bool
    flow: NDArray[Any]  # one record

    @property
    def base_rtt_ps(self) -> int:
        """Round trip on empty queues."""
        return int(self.flow["base_rtt_ps"][0])

    @property
    def rate_bps(self) -> float:
        """Pace that the law has set."""
        return float(self.flow["rate_bps"][0])

    @property
    def cwnd_bytes(self) -> float:
        """Window that the law has set."""
        return float(self.flow["cwnd_bytes"][0])

    @property
    def deadline_ps(self) -> int:
        """Deadline of the first of the law's timers."""
        return int(self.flow["deadline_ps"].min()) if "on_timer" in self.events else NEVER

    def call(self, event: str, *arguments: object) -> bool:
        """Call the handler of an event; return whether there is one."""
        if event not in self.events:
            return False
        status = self.law.call(event, self.flow, *arguments)
        assert status == Status.OK, f"the law answered {status.name}"
        return True

    def take_due_timers(self, now_ps: int) -> list[int]:
        """Clear the timers that are due now and return their numbers."""
        if "on_timer" not in self.events:
            return []
        deadline_ps = self.flow["deadline_ps"][0]
        due = [timer for timer in range(NUM_TIMERS) if deadline_ps[timer] == now_ps]
        deadline_ps[due] = NEVER
        return due

    def signals(self, packet: Packet) -> tuple[int, int, int, NDArray[Any] | None]:
        """Return what an acknowledgement says of its packet's way: endpoint delay, hops, mark, telemetry."""
        num_hops, telemetry = int(self.flow["num_hops"][0]), None
        if self.uses_telemetry:
            num_hops, telemetry = len(packet.telemetry), np.array(packet.telemetry, TELEMETRY_DTYPE)
        return packet.endpoint_ps, num_hops, int(packet.is_marked), telemetry
