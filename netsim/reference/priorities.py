"""Buffers and pauses by priority: shared buffer, headroom, pause frames that take time, and the watchdog.

Each node has a pool that the queues of its ports share by dynamic thresholds. Lossless packets count where they came
in, and pause their sender when that queue is full; lossy packets count where they go out, and are dropped there. The
watchdog of a queue that is paused and has packets for long enough drops or sends them, until no pause comes any more.

Source: IEEE 802.1Qbb (time in quanta of 512 bits); Choudhury, Hahne, "Dynamic Queue Length Thresholds for Shared-Memory
Packet Switches", IEEE/ACM ToN 1998; SONiC's PFC watchdog. Left out: pause frames that are lost but with their link;
cells; thresholds for a port or a switch as a whole.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from fabrictune.cc.interface import NEVER
from fabrictune.netsim.reference.ports import OutputQueue, Packet, Port, serialization_ps
from fabrictune.netsim.reference.run import ClockEvent, EventKind, RunState

QUANTUM_BYTES = 64


class PauseEvent(IntEnum):
    """Events of a port's priority, in their order at one instant."""

    END = 0
    BEGIN = 1
    EXPIRE = 2
    REFRESH = 3
    WATCH = 4


class PauseNotice(NamedTuple):
    """A pause event and what it is about."""

    num_downs: int  # of the link when the frame left
    event: PauseEvent
    priority: int


@dataclass
class Share:
    """A queue's share of a node's buffer, without headroom."""

    reserve_bytes: int
    bytes: int = 0


@dataclass
class Pool:
    """Free space of a node's buffer beyond all reserves, and of its headroom."""

    free_bytes: int
    free_headroom_bytes: int

    def room(self, share: Share, alpha: float) -> int:
        """Return how many bytes a queue may still take."""
        threshold = share.reserve_bytes + int(alpha * self.free_bytes)
        most = max(0, share.reserve_bytes - share.bytes) + self.free_bytes
        return max(0, min(threshold - share.bytes, most))

    def take(self, share: Share, alpha: float, num_bytes: int) -> bool:
        """Take in a packet if there is room for all of it."""
        if num_bytes > self.room(share, alpha):
            return False
        self.change(share, num_bytes)
        return True

    def change(self, share: Share, num_bytes: int) -> None:
        """Add bytes to a queue, or take them out."""
        self.free_bytes += max(0, share.bytes - share.reserve_bytes)
        share.bytes += num_bytes
        self.free_bytes -= max(0, share.bytes - share.reserve_bytes)


@dataclass
class InputQueue:
    """Packets that came through a port with one priority and are still in the node behind it."""

    port: Port
    priority: int
    pool: Pool
    share: Share
    alpha: float
    is_lossless: bool
    headroom_limit_bytes: int
    resume_offset_bytes: int
    headroom_bytes: int = 0
    max_headroom_bytes: int = 0
    pauses_sender: bool = False
    refresh_ps: int = NEVER
    dropped_packets: int = 0

    @property
    def room(self) -> int:
        """Bytes that it may still take without headroom."""
        return self.pool.room(self.share, self.alpha)


class PriorityBuffers:
    """The buffers of all nodes, and the pauses and watchdogs of all ports."""

    def __init__(self, run: RunState, ports: list[Port]) -> None:
        self.run, self.ports = run, ports
        columns = run.columns
        shared = zip(columns["priority_shared_buffer"], columns["priority_headroom_pool"], strict=True)
        self.pools = [Pool(free_bytes, headroom_bytes) for free_bytes, headroom_bytes in shared]
        self.inputs = [[self._input(port, priority) for priority in range(len(port.queues))] for port in ports]
        self.outputs = [[Share(reserve_bytes) for reserve_bytes in columns["priority_output_reserve"]] for _ in ports]

    def _input(self, port: Port, priority: int) -> InputQueue:
        columns, row = self.run.columns, port.number * len(port.queues) + priority
        return InputQueue(
            port=port,
            priority=priority,
            pool=self.pools[columns["port_node"][port.peer.number]],
            share=Share(columns["priority_input_reserve"][row]),
            alpha=columns["priority_alpha"][priority],
            is_lossless=bool(columns["priority_is_lossless"][priority]),
            headroom_limit_bytes=columns["priority_input_headroom"][row],
            resume_offset_bytes=columns["priority_resume_offset"][row],
        )

    def _input_of(self, packet: Packet) -> InputQueue:
        assert packet.ingress is not None, "only packets from elsewhere take buffer"
        return self.inputs[packet.ingress.number][packet.priority]

    def admit(self, packet: Packet, port: Port | None) -> bool:
        """Take in a packet on its way to a port, or to its host (None); return whether there is room."""
        arrived = self._input_of(packet)
        if port is None:
            if arrived.is_lossless:
                return self._admit_lossless(arrived, packet.wire_bytes)
            is_admitted = arrived.pool.take(arrived.share, 0, packet.wire_bytes)
            arrived.dropped_packets += not is_admitted
            return is_admitted
        output, share = port.queues[packet.priority], self.outputs[port.number][packet.priority]
        is_dropping = output.is_storm and self.run.settings.watchdog_drops
        if arrived.is_lossless and not is_dropping:
            return self._admit_lossless(arrived, packet.wire_bytes)
        is_admitted = not is_dropping and arrived.pool.take(share, arrived.alpha, packet.wire_bytes)
        output.counts["dropped_packets"] += not is_admitted
        return is_admitted

    def _admit_lossless(self, arrived: InputQueue, num_bytes: int) -> bool:
        """Take in a packet, in part or whole into headroom where the queue is full, which pauses its sender."""
        below = min(num_bytes, arrived.room)
        above = num_bytes - below
        own_headroom_bytes = arrived.headroom_limit_bytes - arrived.headroom_bytes
        is_admitted = above <= min(own_headroom_bytes, arrived.pool.free_headroom_bytes)
        if is_admitted:
            arrived.pool.change(arrived.share, below)
            arrived.pool.free_headroom_bytes -= above
            arrived.headroom_bytes += above
            arrived.max_headroom_bytes = max(arrived.max_headroom_bytes, arrived.headroom_bytes)
        else:
            arrived.dropped_packets += 1
        is_full = above > 0 or arrived.room < self.run.settings.full_frame_bytes
        if is_full and not arrived.pauses_sender:
            self._send_pause_frame(arrived, is_pause=True)
        return is_admitted

    def release(self, packet: Packet, port: Port | None) -> None:
        """Take out a packet that leaves through a port, or to its host (None); headroom first."""
        arrived = self._input_of(packet)
        if not arrived.is_lossless:
            share = arrived.share if port is None else self.outputs[port.number][packet.priority]
            arrived.pool.change(share, -packet.wire_bytes)
            return
        above = min(packet.wire_bytes, arrived.headroom_bytes)
        arrived.headroom_bytes -= above
        arrived.pool.free_headroom_bytes += above
        arrived.pool.change(arrived.share, above - packet.wire_bytes)
        has_room = arrived.room >= arrived.resume_offset_bytes or arrived.share.bytes == 0
        if arrived.pauses_sender and arrived.headroom_bytes == 0 and has_room:
            self._send_pause_frame(arrived, is_pause=False)

    def _send_pause_frame(self, arrived: InputQueue, *, is_pause: bool) -> None:
        """Send a frame to the sender of a queue; it takes its turn at the transmitter of the way back."""
        settings, port, carrier = self.run.settings, arrived.port, arrived.port.peer
        carrier.busy_until_ps = max(self.run.now_ps, carrier.busy_until_ps)
        carrier.busy_until_ps += serialization_ps(settings.pause_frame_bytes, carrier.rate_bps)
        carrier.queues[arrived.priority].counts["pause_frames_sent"] += 1
        obeyed_ps = carrier.busy_until_ps + carrier.delay_ps + self.run.columns["pause_response"][port.number]
        self._schedule(obeyed_ps, port, PauseEvent.BEGIN if is_pause else PauseEvent.END, arrived.priority)
        arrived.pauses_sender, arrived.refresh_ps = is_pause, NEVER
        if is_pause and settings.pause_quanta and settings.is_pause_refreshed:
            arrived.refresh_ps = self.run.now_ps + self._pause_length_ps(port) // 2
            self._schedule(arrived.refresh_ps, port, PauseEvent.REFRESH, arrived.priority)

    def _pause_length_ps(self, port: Port) -> int:
        return serialization_ps(self.run.settings.pause_quanta * QUANTUM_BYTES, port.rate_bps)

    def _schedule(self, time_ps: int, port: Port, event: PauseEvent, priority: int) -> None:
        notice = PauseNotice(port.health.num_downs, event, priority)
        self.run.schedule(time_ps, EventKind.PAUSE_FRAME, port.number, notice)

    def on_pause_event(self, port: Port, notice: PauseNotice) -> bool:
        """Handle a pause event of a port; return whether the port may send again."""
        event, queue = notice.event, port.queues[notice.priority]
        arrived = self.inputs[port.number][notice.priority]
        if event == PauseEvent.WATCH:
            return queue.look_ps == self.run.now_ps and self._look_at_storm(port, queue)
        if notice.num_downs != port.health.num_downs:
            return False
        if event in (PauseEvent.END, PauseEvent.BEGIN):
            queue.counts["pause_frames_received"] += 1
        if event == PauseEvent.BEGIN:
            self._begin_pause(port, queue, notice.priority)
        elif event == PauseEvent.REFRESH and arrived.refresh_ps == self.run.now_ps:
            self._refresh_pause(arrived)
        is_end = event == PauseEvent.END or (event == PauseEvent.EXPIRE and queue.pause_ends_ps == self.run.now_ps)
        return is_end and self._end_pause(port, queue)

    def _begin_pause(self, port: Port, queue: OutputQueue, priority: int) -> None:
        if self.run.settings.pause_quanta:
            queue.pause_ends_ps = self.run.now_ps + self._pause_length_ps(port)
            self._schedule(queue.pause_ends_ps, port, PauseEvent.EXPIRE, priority)
        queue.last_pause_ps = self.run.now_ps
        if queue.pause.is_on:
            return
        queue.pause.begin(self.run.now_ps)
        if not port.pause.is_on:
            port.pause.begin(self.run.now_ps)
        self.watch(port, queue)

    def _end_pause(self, port: Port, queue: OutputQueue) -> bool:
        if not queue.pause.is_on:
            return False
        queue.pause.end(self.run.now_ps)
        queue.pause_ends_ps = NEVER
        if not queue.is_storm:
            queue.look_ps = NEVER
        if not any(other.pause.is_on for other in port.queues):
            port.pause.end(self.run.now_ps)
        return True

    def _refresh_pause(self, arrived: InputQueue) -> None:
        """Send a pause again; stop the run in a deadlock, where nothing but pauses has happened for long enough."""
        silent_ps = self.run.now_ps - max(port.last_transmission_ps for port in self.ports)
        is_alone = all(_moves_nothing(event) for event in self.run.events)
        if is_alone and silent_ps > self.run.settings.pause_patience_ps:
            self.run.outcome = "stalled"
        else:
            self._send_pause_frame(arrived, is_pause=True)

    def forget_pauses(self, port: Port) -> None:
        """End the pauses of a link that goes down, in both directions."""
        if port.pause.is_on:
            port.pause.end(self.run.now_ps)
        for queue, arrived in zip(port.queues, self.inputs[port.number], strict=True):
            if queue.pause.is_on:
                queue.pause.end(self.run.now_ps)
            queue.pause_ends_ps = NEVER
            arrived.pauses_sender, arrived.refresh_ps = False, NEVER
            if not queue.is_storm:
                queue.look_ps = NEVER

    def watch(self, port: Port, queue: OutputQueue) -> None:
        """Let a switch's watchdog look, a while later, at a queue that is paused and not empty."""
        detect_ps = self.run.settings.watchdog_detect_ps
        if detect_ps == NEVER or port.is_host or queue.is_storm:
            return
        if queue.pause.is_on and queue.packets and queue.look_ps == NEVER:
            self._look_at(port, queue, self.run.now_ps + detect_ps)

    def _look_at(self, port: Port, queue: OutputQueue, time_ps: int) -> None:
        queue.look_ps = time_ps
        self._schedule(time_ps, port, PauseEvent.WATCH, port.queues.index(queue))

    def _look_at_storm(self, port: Port, queue: OutputQueue) -> bool:
        """Begin a storm, prolong it or end it; return whether the port may send again."""
        restore_ps = self.run.settings.watchdog_restore_ps
        queue.look_ps = NEVER
        if queue.is_storm and queue.last_pause_ps + restore_ps <= self.run.now_ps:
            queue.is_storm = queue.ignores_pause = False
            self.watch(port, queue)
            return False
        self._look_at(port, queue, (queue.last_pause_ps if queue.is_storm else self.run.now_ps) + restore_ps)
        return not queue.is_storm and self._begin_storm(port, queue)

    def _begin_storm(self, port: Port, queue: OutputQueue) -> bool:
        queue.is_storm, queue.ignores_pause = True, not self.run.settings.watchdog_drops
        queue.counts["pause_storms"] += 1
        while queue.packets and self.run.settings.watchdog_drops:
            packet = port.pop(queue)
            assert packet.ingress is not None, "watchdogs are in switches only"
            self.release(packet, port)
            queue.counts["dropped_packets"] += 1
            packet.ingress.drop()
        return queue.ignores_pause


def _moves_nothing(event: tuple[Any, ...]) -> bool:
    """Return whether an event is one of a pause, or the time limit."""
    _, kind, number, about = event
    if kind == EventKind.CLOCK:
        return bool(number == ClockEvent.TIME_LIMIT)
    return kind == EventKind.PAUSE_FRAME and isinstance(about, PauseNotice) and about.event != PauseEvent.WATCH
