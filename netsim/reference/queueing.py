"""Queues by priority in the reference engine: buffer, marking, and whose turn it is at a port.

Where a run has no priorities, everything here is left to Forwarding.
"""

from abc import abstractmethod
from collections import deque
from typing import Any

from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.engine_inputs.limits import NO_PRIORITY
from fabrictune.netsim.reference.forwarding import Forwarding
from fabrictune.netsim.reference.state import InputQueue, OutputQueue, Packet, Pool, Share


class Queueing(Forwarding):
    """Gives each priority of a port its queue, and its part of the buffer."""

    def __init__(self, inputs: EngineInputs) -> None:
        super().__init__(inputs)
        self.rules: dict[str, list[Any]] = {
            name.removeprefix("priority_"): column.tolist()
            for name, column in inputs.arrays.items()
            if name.startswith("priority_")
        }
        self.num_priorities = len(self.rules["weight"])
        numbers = range(self.num_priorities)
        self.outputs = [
            [OutputQueue(Share(self.rules["output_reserve"][priority])) for priority in numbers] for _ in self.ports
        ]
        self.inputs_of = [[self._input(port, priority) for priority in numbers] for port in range(len(self.ports))]
        pools = zip(self.rules["shared_buffer"], self.rules["headroom_pool"], strict=True)
        self.pools = [Pool(shared_bytes, headroom_bytes) for shared_bytes, headroom_bytes in pools]
        self.turns = [0] * len(self.ports)
        self.last_transmission_ps = 0

    def _input(self, port: int, priority: int) -> InputQueue:
        row = port * self.num_priorities + priority
        columns = (self.rules[name][row] for name in ("input_reserve", "input_headroom", "resume_offset"))
        reserve_bytes, headroom_bytes, offset_bytes = columns
        return InputQueue(Share(reserve_bytes), headroom_bytes, offset_bytes)

    @abstractmethod
    def _send_priority_pause(self, number: int, priority: int, *, is_pause: bool) -> None:
        """Tell a port, from the node behind it, to pause a priority or to go on."""

    @abstractmethod
    def _watch(self, number: int, priority: int) -> None:
        """Let the watchdog look at a queue later."""

    def _priority_of(self, packet: Packet) -> int:
        names = {"data": None, "cnp": "cnp_priority"}
        name = names.get(packet.kind, "acknowledgement_priority")
        own = NO_PRIORITY if name is None else self.settings[name]
        return int(self.rules["queue_pair"][packet.pair] if own == NO_PRIORITY else own)

    def _pool(self, number: int) -> Pool:
        return self.pools[int(self.rules["port_node"][number])]

    def _is_open(self, output: OutputQueue) -> bool:
        return not output.is_paused or (output.is_storm and not self.settings["watchdog_drops"])

    def _is_sendable(self, output: OutputQueue) -> bool:
        return bool(output.packets or output.ring) and self._is_open(output)

    def _has_sendable(self, number: int) -> bool:
        if not self.num_priorities:
            return super()._has_sendable(number)
        return any(self._is_sendable(output) for output in self.outputs[number])

    def _ring_of(self, number: int, pair: int) -> deque[int]:
        if not self.num_priorities:
            return super()._ring_of(number, pair)
        return self.outputs[number][int(self.rules["queue_pair"][pair])].ring

    def _enqueue(self, number: int, packet: Packet) -> None:
        if not self.num_priorities:
            super()._enqueue(number, packet)
            return
        if not self._has_way(number, packet):
            return
        port, priority = self.ports[number], self._priority_of(packet)
        output = self.outputs[number][priority]
        if packet.ingress is not None and not self._admit_by_priority(number, priority, packet):
            self._drop(packet.ingress)
            return
        if packet.kind == "data":
            curve = tuple(self.rules[name][priority] for name in ("ecn_min", "ecn_max", "ecn_max_fraction"))
            output.counts["ecn_marked_packets"] += self._mark(port, packet, output.queued_bytes, curve)
        is_open = self._is_open(output)
        if is_open and not port.has_wake and port.busy_until_ps <= self.now_ps:
            self._transmit(number, packet)
            return
        output.packets.append(packet)
        for queue in (output, port):
            queue.queued_bytes += packet.wire_bytes
            queue.counts["max_queue_bytes"] = max(queue.counts["max_queue_bytes"], queue.queued_bytes)
        self._watch(number, priority)
        if is_open:
            self._wake_when_free(number)

    def _admit_by_priority(self, number: int, priority: int, packet: Packet) -> bool:
        output, pool = self.outputs[number][priority], self._pool(number)
        is_dropping = output.is_storm and self.settings["watchdog_drops"]
        if self.rules["is_lossless"][priority] and not is_dropping:
            assert packet.ingress is not None, "only packets from elsewhere take buffer"
            return self._admit_lossless(packet.ingress, priority, pool, packet.wire_bytes)
        if not is_dropping and pool.take(output.share, self.rules["alpha"][priority], packet.wire_bytes):
            return True
        output.counts["dropped_packets"] += 1
        return False

    def _admit_lossless(self, ingress: int, priority: int, pool: Pool, num_bytes: int) -> bool:
        queue, alpha = self.inputs_of[ingress][priority], self.rules["alpha"][priority]
        below = min(num_bytes, pool.room(queue.share, alpha))
        above = num_bytes - below
        headroom_left = min(queue.headroom_limit_bytes - queue.headroom_bytes, pool.free_headroom_bytes)
        if above <= headroom_left:
            pool.change(queue.share, below)
            pool.free_headroom_bytes -= above
            queue.headroom_bytes += above
            queue.max_headroom_bytes = max(queue.max_headroom_bytes, queue.headroom_bytes)
        else:
            queue.dropped_packets += 1
        is_full_up = above > 0 or pool.room(queue.share, alpha) < self.settings["full_frame_bytes"]
        if is_full_up and not queue.pauses_sender:
            self._send_priority_pause(ingress, priority, is_pause=True)
        return above <= headroom_left

    def _admit_to_nic(self, packet: Packet) -> bool:
        """Take a packet into the buffer of the NIC that it has reached, or drop it."""
        if not self.num_priorities:
            return self._admit(packet)
        assert packet.ingress is not None, "it came through a port"
        priority = self._priority_of(packet)
        queue, pool = self.inputs_of[packet.ingress][priority], self._pool(self.inputs["port_peer"][packet.ingress])
        if self.rules["is_lossless"][priority]:
            is_admitted = self._admit_lossless(packet.ingress, priority, pool, packet.wire_bytes)
        else:
            is_admitted = pool.take(queue.share, 0, packet.wire_bytes)
            queue.dropped_packets += not is_admitted
        if not is_admitted:
            self._drop(packet.ingress)
        return is_admitted

    def _leave_nic(self, number: int, packet: Packet) -> None:
        """Take a packet that came through a port out of the buffer of its NIC."""
        peer = int(self.inputs["port_peer"][number])
        if not self.num_priorities:
            super()._leave_buffer(number, packet)
            return
        priority = self._priority_of(packet)
        if self.rules["is_lossless"][priority]:
            self._leave_shared_buffer(number, peer, priority, packet.wire_bytes)
        else:
            self._pool(peer).change(self.inputs_of[number][priority].share, -packet.wire_bytes)

    def _queued_bytes(self, number: int, packet: Packet) -> int:
        if not self.num_priorities:
            return super()._queued_bytes(number, packet)
        return self.outputs[number][self._priority_of(packet)].queued_bytes

    def _leave_buffer(self, number: int, packet: Packet) -> None:
        if not self.num_priorities:
            super()._leave_buffer(number, packet)
            return
        priority = self._priority_of(packet)
        output = self.outputs[number][priority]
        output.counts["tx_bytes"] += packet.wire_bytes
        output.counts["tx_packets"] += 1
        self.last_transmission_ps = self.now_ps
        if packet.ingress is not None:
            self._leave_shared_buffer(packet.ingress, number, priority, packet.wire_bytes)

    def _leave_shared_buffer(self, ingress: int, number: int, priority: int, num_bytes: int) -> None:
        pool = self._pool(number)
        if not self.rules["is_lossless"][priority]:
            pool.change(self.outputs[number][priority].share, -num_bytes)
            return
        queue = self.inputs_of[ingress][priority]
        above = min(num_bytes, queue.headroom_bytes)
        queue.headroom_bytes -= above
        pool.free_headroom_bytes += above
        pool.change(queue.share, above - num_bytes)
        has_room = pool.room(queue.share, self.rules["alpha"][priority]) >= queue.resume_offset_bytes
        if queue.pauses_sender and queue.headroom_bytes == 0 and (has_room or queue.share.bytes == 0):
            self._send_priority_pause(ingress, priority, is_pause=False)

    def _serve(self, number: int) -> None:
        if not self.num_priorities:
            super()._serve(number)
            return
        port = self.ports[number]
        before_bytes = port.counts["tx_bytes"]
        while port.counts["tx_bytes"] == before_bytes:
            priority = self._next_priority(number)
            if priority is None:
                return
            output = self.outputs[number][priority]
            if output.packets:
                self._transmit(number, self._take_first(number, output))
            else:
                self._send_from_ring(output.ring)
            if self.rules["weight"][priority] > 0:
                output.balance_bytes -= port.counts["tx_bytes"] - before_bytes
        if self._has_sendable(number):
            self._wake_when_free(number)

    def _take_first(self, number: int, output: OutputQueue) -> Packet:
        packet = output.packets.popleft()
        output.queued_bytes -= packet.wire_bytes
        self.ports[number].queued_bytes -= packet.wire_bytes
        return packet

    def _take_out(self, number: int, priority: int) -> Packet:
        packet = self._take_first(number, self.outputs[number][priority])
        if packet.ingress is not None:
            self._leave_shared_buffer(packet.ingress, number, priority, packet.wire_bytes)
        return packet

    def _next_priority(self, number: int) -> int | None:
        outputs, weights = self.outputs[number], self.rules["weight"]
        ready = [priority for priority in range(self.num_priorities) if self._is_sendable(outputs[priority])]
        strict = [priority for priority in ready if weights[priority] == 0]
        if strict or not ready:
            return max(strict, default=None)
        while True:
            turn = self.turns[number]
            if turn in ready and outputs[turn].balance_bytes > 0:
                return turn
            if turn not in ready:
                outputs[turn].balance_bytes = min(outputs[turn].balance_bytes, 0)
            turn = self.turns[number] = (turn + 1) % self.num_priorities
            if turn in ready:
                outputs[turn].balance_bytes += weights[turn] * self.settings["full_frame_bytes"]
