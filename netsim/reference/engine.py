"""The reference engine: hosts, laws and transfers on top of its ports.

The meaning of every rule is that of netsim/engine, file by file; the sources stand there.
"""

import heapq
from collections.abc import Mapping
from types import ModuleType

import numpy as np

from fabrictune.cc.interface import NEVER
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import Medium
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.reference.faulting import Faulting
from fabrictune.netsim.reference.faults import CAUSES
from fabrictune.netsim.reference.state import (
    NOT_YET,
    PORT_COLUMNS,
    QUEUE_COLUMNS,
    TIME_COLUMNS,
    ClockEvent,
    Kind,
    Transfer,
)


class ReferenceEngine(Faulting):
    """One run; `run()` it, then read `outcome`, `transfer_columns()` and `port_columns()`."""

    def __init__(self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None = None) -> None:
        super().__init__(inputs, law, law_settings)
        if self.settings["time_limit_ps"] != NEVER:
            self._push(self.settings["time_limit_ps"], Kind.CLOCK, ClockEvent.TIME_LIMIT)

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
            Kind.CLOCK: self._on_clock,
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

    def transfer_columns(self) -> dict[str, IntArray]:
        """Return the columns that the compiled engine returns under the same names."""
        columns = {name: [transfer.times[name] for transfer in self.transfers] for name in TIME_COLUMNS}
        columns["packets_sent"] = [self._packets_sent(transfer) for transfer in self.transfers]
        columns["packets_retransmitted"] = [transfer.resent for transfer in self.transfers]
        columns["cnps"] = [transfer.cnps for transfer in self.transfers]
        has_delay = self.settings["endpoint_delay_ps"] > 0 or self.settings["endpoint_jitter_ps"] > 0
        if has_delay or self.inputs["drain_rate"].any():
            for name in ("rtt_ps", "endpoint_ps"):
                columns[f"mean_{name}"] = [
                    getattr(row, name) // row.round_trips if row.round_trips else NOT_YET for row in self.transfers
                ]
        return {name: np.array(values, np.int64) for name, values in columns.items()}

    def port_columns(self) -> dict[str, IntArray]:
        """Return the columns that the compiled engine returns under the same names."""
        for port in self.ports:
            if port.is_paused:
                port.counts["paused_ps"] += self.now_ps - port.paused_since_ps
                port.paused_since_ps = self.now_ps
        return {name: np.array([port.counts[name] for port in self.ports], np.int64) for name in PORT_COLUMNS}

    def fault_drop_columns(self) -> dict[str, IntArray]:
        """Return the columns that the compiled engine returns under the same names, where anything can go wrong."""
        return {cause: np.array([health.dropped[cause] for health in self.health], np.int64) for cause in CAUSES}

    def queue_columns(self) -> dict[str, IntArray]:
        """Return the columns that the compiled engine returns under the same names; empty without priorities."""
        outputs = [output for outputs in self.outputs for output in outputs]
        inputs = [queue for queues in self.inputs_of for queue in queues]
        for output in outputs:
            if output.is_paused:
                output.counts["paused_ps"] += self.now_ps - output.paused_since_ps
                output.paused_since_ps = self.now_ps
        columns = {name: [output.counts[name] for output in outputs] for name in QUEUE_COLUMNS}
        columns["input_dropped_packets"] = [queue.dropped_packets for queue in inputs]
        columns["max_headroom_bytes"] = [queue.max_headroom_bytes for queue in inputs]
        return {name: np.array(values, np.int64) for name, values in columns.items()}

    def _packets_sent(self, transfer: Transfer) -> int:
        row = transfer.row
        if transfer.times["start_ps"] == NOT_YET or self.inputs["transfer_medium"][row] != Medium.FABRIC:
            return 0
        highest = self.pairs[int(self.inputs["transfer_qp"][row])].highest
        return min(highest, transfer.end) - transfer.first + transfer.resent

    def _end_if_nothing_is_left(self) -> None:
        is_open = any(pair.oldest < pair.end and not pair.has_failed for pair in self.pairs)
        if all(transfer.times["acknowledged_ps"] != NOT_YET for transfer in self.transfers):
            self.outcome = "finished"
        elif not is_open and self.num_transfer_events == 0:
            self.outcome = "stalled"

    def _on_clock(self, event: int, about: int) -> None:
        if event == ClockEvent.TIME_LIMIT:
            self.outcome = "time-limit"
        elif event == ClockEvent.FAULT:
            self._on_fault()
        elif event == ClockEvent.REROUTE:
            self._on_reroute()
        else:
            self._on_drain(about)
