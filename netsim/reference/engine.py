"""The reference engine: the parts of a run, its events, and when it ends. Read this one first.

The meaning of every rule is that of netsim/engine, whose files say more of each.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from fabrictune.cc.interface import NEVER
from fabrictune.cc.interpreter import InterpretedLaw
from fabrictune.cc.law_rules import handlers, reads_telemetry
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import Medium
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.reference.buffers import PortBuffers
from fabrictune.netsim.reference.credits import GrantPacers
from fabrictune.netsim.reference.faults import Faults
from fabrictune.netsim.reference.forwarding import Forwarding
from fabrictune.netsim.reference.laws import FlowLaw
from fabrictune.netsim.reference.ports import LOSS_CAUSES, PORT_COLUMNS, QUEUE_COLUMNS, Packet, make_ports
from fabrictune.netsim.reference.priorities import PriorityBuffers
from fabrictune.netsim.reference.receivers import NicBuffer, Receiver
from fabrictune.netsim.reference.routes import Router
from fabrictune.netsim.reference.run import ClockEvent, EventKind, RunState
from fabrictune.netsim.reference.senders import Sender
from fabrictune.netsim.reference.transfers import NOT_YET, TIME_COLUMNS, ReadyTransfers, Transfer, Transfers

ResultColumns = dict[str, IntArray]


class ReferenceEngine:
    """One run; `run()` it, then read `outcome`, `now_ps` and the columns, named as the compiled engine's."""

    def __init__(self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None = None) -> None:
        self.state = run = RunState(inputs)
        self.ports = make_ports(run)
        buffers = PriorityBuffers(run, self.ports) if run.has_priorities else PortBuffers(run, self.ports)
        self.buffers = buffers
        self.routes = Router(run, self.ports)
        self.forwarding = Forwarding(run, self.ports, buffers, self.routes)
        self.faults = Faults(run, self.forwarding)
        self.nic_buffers = [NicBuffer(run, buffers, port, self.forwarding.host_links) for port in self.ports]
        self.pacers = GrantPacers(run, self.forwarding)
        self.transfers = Transfers(run)
        self._make_queue_pairs(inputs, law, law_settings)
        if run.settings.time_limit_ps != NEVER:
            run.schedule(run.settings.time_limit_ps, EventKind.CLOCK, ClockEvent.TIME_LIMIT)

    def _make_queue_pairs(
        self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None
    ) -> None:
        run, forwarding, events = self.state, self.forwarding, frozenset(handlers(law))
        interpreted, uses_telemetry = InterpretedLaw(law, law_settings), reads_telemetry(law)
        self.senders: list[Sender] = []
        self.receivers: list[Receiver] = []
        for pair in range(run.num_pairs):
            messages = ReadyTransfers(run, pair)
            flow_law = FlowLaw(interpreted, events, uses_telemetry, inputs["flow"][pair : pair + 1].copy())
            self.senders.append(Sender(run, forwarding, messages, flow_law, pair))
            receiver = Receiver(run, forwarding, self.transfers, messages, pair, sends_cnps="on_cnp" in events)
            self.receivers.append(receiver)

    @property
    def outcome(self) -> str:
        """Outcome of the run."""
        return self.state.outcome

    @property
    def now_ps(self) -> int:
        """End of the run."""
        return self.state.now_ps

    def run(self) -> None:
        """Handle events in order until all is done or nothing can happen."""
        state = self.state
        if not self.transfers.all:
            state.outcome = "finished"
        while state.outcome == "running":
            if not state.events:
                state.outcome = "stalled"
                break
            self._handle(*state.advance())
            if state.num_live == 0:
                self._end_if_nothing_is_left()

    def _handle(self, kind: EventKind, number: int, about: Any) -> None:
        """Dispatch an event to the port, queue pair or transfer of that number."""
        match kind:
            case EventKind.ARRIVAL:
                self._on_arrival(number, about)
            case EventKind.PAUSE_FRAME:
                self.forwarding.on_pause_event(self.ports[number], about)
            case EventKind.WAKE:
                self.forwarding.on_wake(self.ports[number])
            case EventKind.REPLY:
                self.receivers[number].answer(about)
            case EventKind.PACE:
                self.senders[number].on_pace()
            case EventKind.TIMER:
                self.senders[number].on_timer()
            case EventKind.TRANSFER:
                self._on_transfer(number, is_end=about)
            case EventKind.CLOCK:
                self._on_clock(number, about)

    def _on_arrival(self, number: int, packet: Packet) -> None:
        """Move a packet on that has crossed a wire, or hand it to its host."""
        if not self.forwarding.on_arrival(self.ports[number], packet):
            return
        packet.arrived_ps = self.now_ps
        if packet.is_forward:
            self.pacers.note_target(self.ports[number], packet)
        if packet.kind == "credit-request":
            self.state.num_live -= 1
        elif packet.kind == "trimmed":
            self.receivers[packet.pair].on_trimmed(packet)
        elif packet.kind != "data":
            self.senders[packet.pair].on_answer(packet)
        elif self.nic_buffers[number].drain_rate_bps:
            self.nic_buffers[number].append(packet)
        else:
            self.receivers[packet.pair].on_data(packet)

    def _on_transfer(self, row: int, *, is_end: bool) -> None:
        transfer = self.transfers.on_event(row, is_end=is_end)
        if transfer is not None:
            self.senders[self.state.columns["transfer_qp"][row]].append(transfer)

    def _on_clock(self, event: int, number: int) -> None:
        match event:
            case ClockEvent.TIME_LIMIT:
                self.state.outcome = "time-limit"
            case ClockEvent.FAULT:
                self.faults.on_change()
            case ClockEvent.REROUTE:
                for flow in self.routes.begin_epoch():
                    if flow % 2 == 0:
                        self.senders[flow // 2].follow_path()
            case ClockEvent.DRAIN:
                packet = self.nic_buffers[number].on_drain()
                self.receivers[packet.pair].on_data(packet)
            case ClockEvent.GRANT:
                self.pacers.on_grant(number)

    def _end_if_nothing_is_left(self) -> None:
        if all(transfer.times["acknowledged_ps"] != NOT_YET for transfer in self.transfers.all):
            self.state.outcome = "finished"
        elif self.transfers.num_events == 0 and not any(sender.has_work for sender in self.senders):
            self.state.outcome = "stalled"

    def transfer_columns(self) -> ResultColumns:
        """Return the columns of transfers; round trips only where hosts take time."""
        settings, transfers = self.state.settings, self.transfers.all
        columns = {name: [transfer.times[name] for transfer in transfers] for name in TIME_COLUMNS}
        columns["packets_sent"] = [self._packets_sent(transfer) for transfer in transfers]
        columns["packets_retransmitted"] = [transfer.resent for transfer in transfers]
        columns["cnps"] = [transfer.cnps for transfer in transfers]
        if settings.endpoint_delay_ps or settings.endpoint_jitter_ps or any(self.state.columns["drain_rate"]):
            for name in ("rtt_ps", "endpoint_ps"):
                columns[f"mean_{name}"] = [
                    getattr(row, name) // row.round_trips if row.round_trips else NOT_YET for row in transfers
                ]
        return _arrays(columns)

    def _packets_sent(self, transfer: Transfer) -> int:
        columns = self.state.columns
        if transfer.times["start_ps"] == NOT_YET or columns["transfer_medium"][transfer.row] != Medium.FABRIC:
            return 0
        sender: Sender = self.senders[columns["transfer_qp"][transfer.row]]
        return min(sender.highest, transfer.end) - transfer.first + transfer.resent

    def port_columns(self) -> ResultColumns:
        """Return the columns of ports."""
        for port in self.ports:
            port.pause.settle(self.now_ps)
        return _arrays({name: [port.counts[name] for port in self.ports] for name in PORT_COLUMNS})

    def queue_columns(self) -> ResultColumns:
        """Return the columns of each port's priorities; empty without priorities."""
        outputs, inputs = [], []
        if isinstance(self.buffers, PriorityBuffers):
            outputs = [queue for port in self.ports for queue in port.queues]
            inputs = [queue for queues in self.buffers.inputs for queue in queues]
        for output in outputs:
            output.pause.settle(self.now_ps)
        columns = {name: [output.counts[name] for output in outputs] for name in QUEUE_COLUMNS}
        columns["input_dropped_packets"] = [queue.dropped_packets for queue in inputs]
        columns["max_headroom_bytes"] = [queue.max_headroom_bytes for queue in inputs]
        return _arrays(columns)

    def fault_drop_columns(self) -> ResultColumns:
        """Return the columns of packets lost at each port by cause, where anything can go wrong."""
        return _arrays({cause: [port.health.dropped[cause] for port in self.ports] for cause in LOSS_CAUSES})

    def flow_records(self) -> bytes:
        """Return the law's records of all queue pairs."""
        return b"".join(sender.law.flow.tobytes() for sender in self.senders)


def _arrays(columns: Mapping[str, list[int]]) -> ResultColumns:
    return {name: np.array(values, np.int64) for name, values in columns.items()}
