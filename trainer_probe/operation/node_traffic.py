"""A node's traffic over the last minutes: what its interfaces have received and sent together, a rate every second.

Heartbeats come several times in a step, in which traffic comes in bursts; a second evens them out.
"""

from collections import deque
from collections.abc import Mapping

SAMPLE_S = 1.0
NUM_SAMPLES = 120


class NodeTraffic:
    """Rates between samples of a node's counters. No clock: the time is given."""

    def __init__(self) -> None:
        self._rates_bps = deque[float](maxlen=NUM_SAMPLES)
        self._last: tuple[float, int] | None = None  # time and bytes

    def take(self, nic_bytes: Mapping[str, tuple[int, int]], now_s: float) -> None:
        """Take a heartbeat's counters; ones that went back, of a device that was reset, begin anew."""
        num_bytes = sum(received + sent for received, sent in nic_bytes.values())
        if self._last is None or num_bytes < self._last[1]:
            self._last = now_s, num_bytes
            return
        elapsed_s = now_s - self._last[0]
        if elapsed_s >= SAMPLE_S:
            self._rates_bps.append(8 * (num_bytes - self._last[1]) / elapsed_s)
            self._last = now_s, num_bytes

    def rates_bps(self) -> tuple[float, ...]:
        """Return the rates, the newest last."""
        return tuple(self._rates_bps)
