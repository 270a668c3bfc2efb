"""Ports of the reference engine: queues, marking, pauses, and the heap of events behind them."""

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any

from fabrictune.cc.interface import MAX_TELEMETRY_HOPS
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.engine_inputs.limits import NO_ROUTE, PATH_END
from fabrictune.netsim.reference.faults import Epochs, Health
from fabrictune.netsim.reference.path_choice import PathChooser
from fabrictune.netsim.reference.state import Kind, Packet, Port, RandomStream

PS_BITS_PER_BYTE = 8 * 10**12


class Forwarding(ABC):
    """Moves packets from port to port; hosts are left to a subclass."""

    def __init__(self, inputs: EngineInputs) -> None:
        self.inputs = inputs
        self.settings: Mapping[str, Any] = inputs.settings
        self.now_ps = 0
        self.outcome = "running"
        self.events: list[tuple[int, Kind, int, int]] = []
        self.packets: dict[int, Packet] = {}  # by number, those an event is about
        self.num_packets = 0
        self.num_live = 0
        self.path_chooser = PathChooser(inputs)
        self.epochs = Epochs(inputs)
        self.health = [
            Health(RandomStream(self.settings["fault_key"], port)) for port in range(len(inputs["port_rate_bps"]))
        ]
        self.ports = [
            Port(int(rate_bps), int(delay_ps), RandomStream(self.settings["random_key"], port))
            for port, (rate_bps, delay_ps) in enumerate(
                zip(inputs["port_rate_bps"], inputs["port_delay_ps"], strict=True)
            )
        ]

    @abstractmethod
    def _deliver(self, packet: Packet) -> None:
        """Hand a packet to the host at the end of its path."""

    @abstractmethod
    def _send_from_ring(self, ring: deque[int]) -> bool:
        """Send a packet of one of the queue pairs that wait for their turn at a NIC; False if none may."""

    def _push(self, time_ps: int, kind: Kind, number: int, payload: int = 0) -> None:
        heapq.heappush(self.events, (time_ps, kind, number, payload))

    def _push_packet(self, time_ps: int, kind: Kind, number: int, packet: Packet) -> None:
        self.num_packets += 1
        self.packets[self.num_packets] = packet
        self._push(time_ps, kind, number, self.num_packets)

    def _path(self, pair: int, direction: int) -> list[int]:
        start = self.epochs.position[2 * pair + direction]
        row = self.inputs["path"][start : start + self.inputs.settings["path_stride"]]
        return [int(port) for port in row if port != PATH_END]

    def _on_arrival(self, port: int, number: int) -> None:
        packet = self.packets.pop(number)
        health = self.health[port]
        if packet.departure != health.num_downs or health.has_error(packet):
            self._lose(port, "link_down" if packet.departure != health.num_downs else "bit_error")
            return
        loss_fraction = self.inputs["loss_fraction"][port]
        if loss_fraction > 0 and self.ports[port].random.next_fraction() < loss_fraction:
            self._drop(port)
            return
        next_port = self.path_chooser.next_port(port, packet, self.now_ps, self.ports)
        if next_port is None:
            self._deliver(packet)
        else:
            self._enqueue(next_port, packet)

    def _drop(self, port: int) -> None:
        self.ports[port].counts["dropped_packets"] += 1
        self.num_live -= 1

    def _lose(self, port: int, cause: str) -> None:
        self.health[port].dropped[cause] += 1
        self._drop(port)

    def _has_way(self, number: int, packet: Packet) -> bool:
        if number == NO_ROUTE:
            assert packet.ingress is not None, "a path begins with the NIC's port"
            self._lose(packet.ingress, "no_route")
            return False
        if self.health[number].is_down:
            self._lose(number, "link_down")
            return False
        return True

    def _enqueue(self, number: int, packet: Packet) -> None:
        if not self._has_way(number, packet):
            return
        port = self.ports[number]
        is_data = packet.kind == "data"
        if is_data:
            if not self._admit(packet):
                return
            self._mark(port, packet, port.queued_bytes, self.settings["marking"])
        may_send = not (is_data and port.is_paused)
        if may_send and not port.has_wake and port.busy_until_ps <= self.now_ps:
            self._transmit(number, packet)
            return
        (port.data if is_data else port.control).append(packet)
        if is_data:
            port.queued_bytes += packet.wire_bytes
            port.counts["max_queue_bytes"] = max(port.counts["max_queue_bytes"], port.queued_bytes)
        if may_send:
            self._wake_when_free(number)

    def _admit(self, packet: Packet) -> bool:
        if packet.ingress is None:
            return True
        ingress = self.ports[packet.ingress]
        level = ingress.ingress_bytes + packet.wire_bytes
        if level > self.inputs["pause_above"][packet.ingress]:
            if level > self.inputs["ingress_limit"][packet.ingress]:
                self._drop(packet.ingress)
                return False
            if self.settings["is_pfc_enabled"] and not ingress.pauses_sender:
                self._send_pause_frame(packet.ingress)
        ingress.ingress_bytes = level
        return True

    def _mark(self, port: Port, packet: Packet, queued_bytes: int, curve: tuple[int, int, float]) -> bool:
        """Perhaps mark a packet that finds so many bytes in its queue; return whether it was marked."""
        least, most, max_fraction = curve
        if queued_bytes <= least:
            return False
        if queued_bytes < most:
            probability_scaled = max_fraction * float(queued_bytes - least)
            if port.random.next_fraction() * float(most - least) >= probability_scaled:
                return False
        packet.is_marked = True
        port.counts["ecn_marked_packets"] += 1
        return True

    def _transmit(self, number: int, packet: Packet) -> None:
        port = self.ports[number]
        port.busy_until_ps = self.now_ps + serialization_ps(packet.wire_bytes, port.rate_bps)
        port.counts["tx_bytes"] += packet.wire_bytes
        port.counts["tx_packets"] += 1
        port.counts["data_packets"] += packet.kind == "data"
        arrives_ps = port.busy_until_ps + port.delay_ps
        self._leave_buffer(number, packet)
        if packet.kind == "data" and len(packet.telemetry) < MAX_TELEMETRY_HOPS:
            queued_bytes = self._queued_bytes(number, packet)
            packet.telemetry.append((self.now_ps, port.counts["tx_bytes"], queued_bytes, float(port.rate_bps)))
        packet.ingress, packet.departure = number, self.health[number].departure()
        self._push_packet(arrives_ps, Kind.ARRIVAL, number, packet)

    def _queued_bytes(self, number: int, _packet: Packet) -> int:
        """Return what waits in the queue a packet has left."""
        return self.ports[number].queued_bytes

    def _leave_buffer(self, _number: int, packet: Packet) -> None:
        """Take a packet that a port begins to send out of its node's buffer."""
        if packet.kind != "data" or packet.ingress is None:
            return
        ingress = self.ports[packet.ingress]
        ingress.ingress_bytes -= packet.wire_bytes
        if ingress.pauses_sender and ingress.ingress_bytes <= self.inputs["resume_below"][packet.ingress]:
            self._send_pause_frame(packet.ingress)

    def _send_pause_frame(self, number: int) -> None:
        port, reverse = self.ports[number], self.ports[self.inputs["port_peer"][number]]
        port.pauses_sender = not port.pauses_sender
        port.pause_frames += 1
        leaves_ps = max(self.now_ps, reverse.busy_until_ps)
        leaves_ps += serialization_ps(self.settings["pause_frame_bytes"], reverse.rate_bps)
        arrives_ps = leaves_ps + reverse.delay_ps + int(self.inputs["pause_response"][number])
        self._push(arrives_ps, Kind.PAUSE_FRAME, number, port.pause_frames)

    def _on_pause_frame(self, number: int, frame: int) -> None:
        if frame <= self.health[number].lost_pause_frames:
            return
        port = self.ports[number]
        port.is_paused = frame % 2 == 1
        if port.is_paused:
            port.counts["pauses"] += 1
            port.paused_since_ps = self.now_ps
        else:
            port.counts["paused_ps"] += self.now_ps - port.paused_since_ps
            self._kick(number)

    def _on_wake(self, number: int, _payload: int) -> None:
        self.ports[number].has_wake = False
        self._kick(number)

    def _serve(self, number: int) -> None:
        port = self.ports[number]
        if port.control:
            self._transmit(number, port.control.popleft())
        elif port.is_paused:
            return
        elif port.data:
            packet = port.data.popleft()
            port.queued_bytes -= packet.wire_bytes
            self._transmit(number, packet)
        elif not self._send_from_ring(port.ring):
            return
        if self._has_sendable(number):
            self._wake_when_free(number)

    def _has_sendable(self, number: int) -> bool:
        port = self.ports[number]
        return bool(port.control) or (not port.is_paused and bool(port.data or port.ring))

    def _ring_of(self, number: int, _pair: int) -> deque[int]:
        """Return the ring in which a queue pair waits for its turn at a NIC's port."""
        return self.ports[number].ring

    def _wake_when_free(self, number: int) -> None:
        port = self.ports[number]
        if not port.has_wake:
            port.has_wake = True
            self._push(port.busy_until_ps, Kind.WAKE, number)

    def _kick(self, number: int) -> None:
        port = self.ports[number]
        if port.has_wake:
            return
        if port.busy_until_ps <= self.now_ps:
            self._serve(number)
        elif self._has_sendable(number):
            self._wake_when_free(number)


def serialization_ps(num_bytes: int, rate_bps: int) -> int:
    """Return how long a transmitter is busy with a frame, rounded up."""
    return -(-num_bytes * PS_BITS_PER_BYTE // rate_bps)
