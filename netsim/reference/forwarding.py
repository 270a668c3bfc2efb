"""Forwarding: what happens to a packet between its NIC's transmitter and its destination.

A packet that reaches the end of a wire may be lost there; else it takes buffer, is perhaps marked, and waits for its
turn at the next port. Where it would wait too long, its payload may be cut off instead.

Source: RED marking as in DCQCN (SIGCOMM'15), section 3.1, on the queue a packet finds; IEEE 802.1Q; Shreedhar,
Varghese, "Efficient Fair Queuing using Deficit Round Robin", SIGCOMM 1995, with a balance that may be overdrawn by one
packet, since a NIC does not know the next one's size.
"""

from typing import Any

from fabrictune.cc.interface import MAX_TELEMETRY_HOPS
from fabrictune.netsim.engine_inputs.limits import NO_ROUTE
from fabrictune.netsim.reference.buffers import PortBuffers
from fabrictune.netsim.reference.host_links import HostLinks
from fabrictune.netsim.reference.ports import CONTROL, OutputQueue, Packet, Port, serialization_ps
from fabrictune.netsim.reference.priorities import PriorityBuffers
from fabrictune.netsim.reference.routes import Router
from fabrictune.netsim.reference.run import EventKind, RunState


class Forwarding:
    """Moves packets from port to port."""

    def __init__(
        self, run: RunState, ports: list[Port], buffers: PortBuffers | PriorityBuffers, routes: Router
    ) -> None:
        self.run, self.ports, self.buffers, self.routes = run, ports, buffers, routes
        self.host_links = HostLinks(run)

    def on_arrival(self, port: Port, packet: Packet) -> bool:
        """Move a packet on from the end of a port's wire; return whether it has reached its host."""
        if self._is_lost(port, packet):
            return False
        number = self.routes.next_port(port, packet)
        if number is None:
            return True
        if number == NO_ROUTE:
            port.lose("no_route")
        else:
            self.enqueue(self.ports[number], packet)
        return False

    def _is_lost(self, port: Port, packet: Packet) -> bool:
        cause = port.health.loss_cause(packet)
        loss_fraction = self.run.columns["loss_fraction"][port.number]
        if cause is not None:
            port.lose(cause)
            return True
        if loss_fraction > 0 and port.random.next_fraction() < loss_fraction:
            port.drop()
            return True
        return False

    def enqueue(self, port: Port, packet: Packet) -> None:
        """Send a packet through a port, at once or when its turn comes; drop it if there is no room."""
        if port.health.is_down:
            port.lose("link_down")
            return
        if self._is_to_be_trimmed(port, packet):
            self._trim(port, packet)
        queue = port.queues[packet.priority]
        if packet.ingress is not None and self._is_dropped_early(port, queue, packet):
            queue.counts["dropped_packets"] += 1
            packet.ingress.drop()
            return
        if packet.ingress is not None and not self.buffers.admit(packet, port):
            packet.ingress.drop()
            return
        if packet.kind == "data":
            self._mark(port, queue, packet)
        if queue.is_open and not port.has_wake and port.busy_until_ps <= self.run.now_ps:
            self.transmit(port, packet)
            return
        port.append(packet)
        self.buffers.watch(port, queue)
        if queue.is_open:
            self._wake_when_free(port)

    def _is_dropped_early(self, port: Port, queue: OutputQueue, packet: Packet) -> bool:
        """Return whether a switch drops a packet that it would mark and that is not ECN-capable."""
        settings = self.run.settings
        is_capable = packet.kind == "data" or settings.acknowledgements_are_ecn_capable
        if packet.kind == "cnp":
            is_capable = settings.cnps_are_ecn_capable
        return queue.drops_early and not is_capable and _is_to_be_marked(port, queue)

    def _is_to_be_trimmed(self, port: Port, packet: Packet) -> bool:
        settings = self.run.settings
        if not settings.trim_above_bytes or packet.kind != "data" or packet.wire_bytes <= settings.trimmed_bytes:
            return False
        if self.run.has_priorities and self.run.columns["priority_is_lossless"][packet.priority]:
            return False
        limit_bytes = settings.last_hop_trim_above_bytes if port.peer.is_host else settings.trim_above_bytes
        return bool(port.queues[packet.priority].queued_bytes + packet.wire_bytes > limit_bytes)

    def _trim(self, port: Port, packet: Packet) -> None:
        """Cut a packet's payload off; the rest goes before all data, or in a priority of its own."""
        settings = self.run.settings
        packet.kind, packet.wire_bytes, packet.is_last_hop = "trimmed", settings.trimmed_bytes, port.peer.is_host
        packet.priority = settings.trimmed_priority if self.run.has_priorities else CONTROL

    def _mark(self, port: Port, queue: OutputQueue, packet: Packet) -> None:
        """Perhaps mark a packet by the length of the queue that it finds."""
        if _is_to_be_marked(port, queue):
            packet.is_marked = True
            port.counts["ecn_marked_packets"] += 1
            queue.counts["ecn_marked_packets"] += 1

    def transmit(self, port: Port, packet: Packet) -> None:
        """Begin to send a packet; it arrives, whole, when the last bit has crossed the wire."""
        queue = port.queues[packet.priority]
        port.sample_load()
        port.last_transmission_ps = self.run.now_ps
        port.busy_until_ps = self.run.now_ps + serialization_ps(packet.wire_bytes, port.rate_bps)
        if packet.kind == "data" and packet.ingress is None:
            port.busy_until_ps = max(port.busy_until_ps, self.host_links.read(port, packet))
        arrives_ps = port.busy_until_ps + port.delay_ps
        for counts in (port.counts, queue.counts):
            counts["tx_bytes"] += packet.wire_bytes
            counts["tx_packets"] += 1
        port.counts["data_packets"] += packet.kind == "data"
        if packet.ingress is not None:
            self.buffers.release(packet, port)
        if packet.kind == "data" and len(packet.telemetry) < MAX_TELEMETRY_HOPS:
            record = (self.run.now_ps, port.counts["tx_bytes"], queue.queued_bytes, float(port.rate_bps))
            packet.telemetry.append(record)
        packet.ingress, packet.departure = port, port.health.departure()
        self.run.schedule(arrives_ps, EventKind.ARRIVAL, port.number, packet)

    def on_wake(self, port: Port) -> None:
        """Go on when the transmitter is free."""
        port.has_wake = False
        self.kick(port)

    def on_pause_event(self, port: Port, about: Any) -> None:
        """Pause a port or a queue of it, or go on."""
        if self.buffers.on_pause_event(port, about):
            self.kick(port)

    def kick(self, port: Port) -> None:
        """Send what may be sent, now or as soon as the transmitter is free."""
        if port.has_wake:
            return
        if port.busy_until_ps <= self.run.now_ps:
            self._serve(port)
        elif any(queue.is_sendable for queue in port.queues):
            self._wake_when_free(port)

    def _serve(self, port: Port) -> None:
        """Send one packet: the first of a queue, or of the first queue pair in a ring that may send."""
        before_bytes = port.counts["tx_bytes"]
        while port.counts["tx_bytes"] == before_bytes:
            queue = self._next_queue(port)
            if queue is None:
                return
            if queue.packets:
                self.transmit(port, port.pop(queue))
            else:
                queue.ring.popleft()()
            if queue.weight > 0:
                queue.balance_bytes -= port.counts["tx_bytes"] - before_bytes
        if any(queue.is_sendable for queue in port.queues):
            self._wake_when_free(port)

    def _next_queue(self, port: Port) -> OutputQueue | None:
        """Return the queue whose turn it is: the highest strict one, else by deficit round robin."""
        ready = [queue for queue in port.queues if queue.is_sendable]
        strict = [queue for queue in ready if queue.weight == 0]
        if strict or not ready:
            return strict[-1] if strict else None
        while True:
            queue = port.queues[port.turn]
            if queue in ready and queue.balance_bytes > 0:
                return queue
            if queue not in ready:
                queue.balance_bytes = min(queue.balance_bytes, 0)
            port.turn = (port.turn + 1) % len(port.queues)
            queue = port.queues[port.turn]
            if queue in ready:
                queue.balance_bytes += queue.weight * self.run.settings.full_frame_bytes

    def _wake_when_free(self, port: Port) -> None:
        if not port.has_wake:
            port.has_wake = True
            self.run.schedule(port.busy_until_ps, EventKind.WAKE, port.number)

    def clear(self, port: Port) -> None:
        """Lose everything that waits at a port whose link is down; queue pairs at it go on."""
        for queue in port.queues:
            while queue.packets:
                packet = port.pop(queue)
                if packet.ingress is not None:
                    self.buffers.release(packet, port)
                port.lose("link_down")
        if port.is_host:
            self.kick(port)


def _is_to_be_marked(port: Port, queue: OutputQueue) -> bool:
    """Draw whether RED picks a packet that finds the queue as long as it is."""
    least, most, max_fraction = queue.marking
    if queue.queued_bytes <= least or queue.queued_bytes >= most:
        return queue.queued_bytes > least
    return port.random.next_fraction() * float(most - least) < max_fraction * float(queue.queued_bytes - least)
