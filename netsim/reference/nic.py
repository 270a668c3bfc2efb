"""The receiving side of a NIC in the reference engine: a buffer that the host empties, and time to answer."""

from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from types import ModuleType

from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.reference.forwarding import serialization_ps
from fabrictune.netsim.reference.scheduling import Scheduling
from fabrictune.netsim.reference.state import ClockEvent, Kind, Packet, RandomStream


class Nic(Scheduling):
    """Holds what has arrived until the host has taken it, and answers after a delay."""

    def __init__(self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None = None) -> None:
        super().__init__(inputs, law, law_settings)
        self.nic_buffers: list[deque[Packet]] = [deque() for _ in self.ports]
        key = self.settings["endpoint_key"]
        self.endpoint_random = [RandomStream(key, number) for number in range(len(self.pairs))]
        self.answer_ps = [-1] * len(self.pairs)

    @abstractmethod
    def _answer(self, packet: Packet) -> None:
        """Answer a data packet."""

    @abstractmethod
    def _note_mark(self, packet: Packet) -> None:
        """Look at a data packet's mark."""

    def _receive_data(self, packet: Packet) -> None:
        packet.arrived_ps = self.now_ps
        if not self.inputs["drain_rate"][packet.ingress]:
            self._see(packet)
        elif self._admit_to_nic(packet):
            assert packet.ingress is not None
            buffer = self.nic_buffers[packet.ingress]
            buffer.append(packet)
            if len(buffer) == 1:
                self._hand_on_later(packet.ingress)

    def _hand_on_later(self, port: int) -> None:
        wire_bytes = self.nic_buffers[port][0].wire_bytes
        done_ps = self.now_ps + serialization_ps(wire_bytes, int(self.inputs["drain_rate"][port]))
        self._push(done_ps, Kind.CLOCK, ClockEvent.DRAIN, port)

    def _on_drain(self, port: int) -> None:
        packet = self.nic_buffers[port].popleft()
        self._leave_nic(port, packet)
        if self.nic_buffers[port]:
            self._hand_on_later(port)
        self._see(packet)

    def _see(self, packet: Packet) -> None:
        self._note_mark(packet)
        delay_ps, jitter_ps = self.settings["endpoint_delay_ps"], self.settings["endpoint_jitter_ps"]
        if not delay_ps and not jitter_ps:
            self._answer(packet)
            return
        if jitter_ps:
            delay_ps += self.endpoint_random[packet.pair].next_below(jitter_ps)
        self.answer_ps[packet.pair] = max(self.now_ps + delay_ps, self.answer_ps[packet.pair] + 1)
        self._push_packet(self.answer_ps[packet.pair], Kind.REPLY, packet.pair, packet)
