"""Host links: PCIe between the NICs of a host and its memory.

Each carries the packets of its ports one after another, in each direction, in the order in which ports begin to send
and buffers begin to empty; a port has one packet on its way over a link, so ports share it in turn. A NIC cuts through:
a packet leaves as its bytes come.

Left out: requests of reads, and the latency of switches.
"""

from collections import Counter

from fabrictune.netsim.engine_inputs.limits import PATH_END
from fabrictune.netsim.reference.ports import Packet, Port, serialization_ps
from fabrictune.netsim.reference.run import RunState


class HostLinks:
    """The PCIe links of all hosts."""

    def __init__(self, run: RunState) -> None:
        self.run = run
        self.until_ps: Counter[tuple[str, int]] = Counter()  # when a link is free in a direction

    def read(self, port: Port, packet: Packet) -> int:
        """Return when a data packet has come from memory that a host's port begins to send now."""
        return self._cross("read", port, packet)

    def write(self, port: Port, packet: Packet) -> int:
        """Return when a data packet is in memory that the NIC of a port begins to write now."""
        return self._cross("write", port, packet)

    def _cross(self, direction: str, port: Port, packet: Packet) -> int:
        columns, now_ps = self.run.columns, self.run.now_ps
        payload_bytes = max(0, packet.wire_bytes - self.run.settings.wire_overhead_bytes)
        done_ps = now_ps
        for link in columns["host_link"][2 * port.number : 2 * port.number + 2]:
            assert link != PATH_END, "asked for ports of hosts"
            duration_ps = serialization_ps(payload_bytes, columns[f"host_link_{direction}_rate"][link])
            self.until_ps[direction, link] = max(self.until_ps[direction, link], now_ps) + duration_ps
            done_ps = max(done_ps, self.until_ps[direction, link])
        return done_ps
