"""Buffers and pauses without priorities: one buffer behind each port, whose level pauses the port's sender.

Source: IEEE 802.1Qbb.
"""

from dataclasses import dataclass

from fabrictune.netsim.reference.ports import DATA, OutputQueue, Packet, Port, serialization_ps
from fabrictune.netsim.reference.run import EventKind, RunState


@dataclass
class IngressBuffer:
    """Packets that arrived through one port and are still in the node behind it."""

    bytes: int = 0
    pauses_sender: bool = False
    num_frames: int = 0  # pause frames sent; of these the odd ones pause
    num_void_frames: int = 0  # lost with the link, and all before


class PortBuffers:
    """The buffers behind all ports."""

    def __init__(self, run: RunState, ports: list[Port]) -> None:
        self.run = run
        self.behind = [IngressBuffer() for _ in ports]

    def admit(self, packet: Packet, _port: Port | None) -> bool:
        """Take in a packet that has come through a port, and pause its sender above the threshold; False if full."""
        assert packet.ingress is not None, "only packets from elsewhere take buffer"
        if packet.priority != DATA:
            return True
        number, buffer = packet.ingress.number, self.behind[packet.ingress.number]
        level = buffer.bytes + packet.wire_bytes
        if level > self.run.columns["pause_above"][number]:
            if level > self.run.columns["ingress_limit"][number]:
                return False
            if self.run.settings.is_pfc_enabled and not buffer.pauses_sender:
                self._send_pause_frame(packet.ingress)
        buffer.bytes = level
        return True

    def release(self, packet: Packet, _port: Port | None) -> None:
        """Take out a packet that leaves its node, and let its sender go on below the threshold."""
        assert packet.ingress is not None, "only packets from elsewhere take buffer"
        if packet.priority != DATA:
            return
        number, buffer = packet.ingress.number, self.behind[packet.ingress.number]
        buffer.bytes -= packet.wire_bytes
        if buffer.pauses_sender and buffer.bytes <= self.run.columns["resume_below"][number]:
            self._send_pause_frame(packet.ingress)

    def _send_pause_frame(self, port: Port) -> None:
        buffer, carrier = self.behind[port.number], port.peer
        buffer.pauses_sender = not buffer.pauses_sender
        buffer.num_frames += 1
        carrier.busy_until_ps = max(self.run.now_ps, carrier.busy_until_ps)
        carrier.busy_until_ps += serialization_ps(self.run.settings.pause_frame_bytes, carrier.rate_bps)
        obeyed_ps = carrier.busy_until_ps + carrier.delay_ps + self.run.columns["pause_response"][port.number]
        self.run.schedule(obeyed_ps, EventKind.PAUSE_FRAME, port.number, buffer.num_frames)

    def on_pause_event(self, port: Port, frame: int) -> bool:
        """Obey a pause frame; return whether the port may send again."""
        if frame <= self.behind[port.number].num_void_frames:
            return False
        is_pause = frame % 2 == 1
        (port.pause.begin if is_pause else port.pause.end)(self.run.now_ps)
        return not is_pause

    def forget_pauses(self, port: Port) -> None:
        """End the pauses of a link that goes down, those on their way included."""
        buffer = self.behind[port.number]
        if port.pause.is_on:
            port.pause.end(self.run.now_ps)
        buffer.num_frames += buffer.pauses_sender
        buffer.pauses_sender = False
        buffer.num_void_frames = buffer.num_frames

    def watch(self, _port: Port, _queue: OutputQueue) -> None:
        """Do nothing: watchdogs look at priorities."""
