"""Port loads: averages of what a port sends and of what waits for it, as adaptive routing samples them.

A sample is taken at the end of every interval, of what the events before that instant have left. A meter closes the
intervals that have ended before its port's queue or count of bytes changes, and when it is asked.

Source: SAI, "Adaptive Routing and Switching"; docs/decisions/0061-adaptive-routing.md has what that leaves open.
"""

from fabrictune.netsim.engine_inputs.path_choice import WHOLE_LOAD
from fabrictune.netsim.reference.run import RunState

FRACTION_BITS = 8  # of an average
MOST = 1e12  # of a sample, in the last band of any range
BYTE_LOAD = WHOLE_LOAD * 8e12  # of a byte, times what an interval carries


class LoadMeter:
    """The loads of one port."""

    def __init__(self, run: RunState, rate_bps: int) -> None:
        self.settings = settings = run.settings
        self.capacity = float(rate_bps) * float(settings.load_sampling_ps)  # bit-picoseconds a second
        self.queue_scale = float(max(run.columns["port_rate_bps"])) / float(rate_bps)
        self.next_ps: int = settings.load_sampling_ps
        self.tx_bytes = 0  # when the last interval ended
        self.past_scaled = self.future_scaled = 0

    def settle(self, now_ps: int, tx_bytes: int, queued_bytes: int) -> None:
        """Close the intervals that have ended; what was sent is the first one's."""
        interval_ps = self.settings.load_sampling_ps
        while self.next_ps <= now_ps:
            before = (self.past_scaled, self.future_scaled)
            sent, self.tx_bytes = tx_bytes - self.tx_bytes, tx_bytes
            self.past_scaled = self._moved(self.past_scaled, sent * BYTE_LOAD / self.capacity)
            self.future_scaled = self._moved(self.future_scaled, queued_bytes * self.queue_scale)
            self.next_ps += interval_ps
            if not sent and before == (self.past_scaled, self.future_scaled):
                self.next_ps += max(0, (now_ps - self.next_ps) // interval_ps + 1) * interval_ps

    def _moved(self, average_scaled: int, sample: float) -> int:
        sample_scaled = int(min(sample, MOST)) << FRACTION_BITS
        if self.settings.load_falls_at_once and sample_scaled < average_scaled:
            return sample_scaled
        return average_scaled + int((sample_scaled - average_scaled) >> self.settings.load_exponent)

    @property
    def quality(self) -> int:
        """The mean band of the loads by weights; the lowest is the best."""
        settings = self.settings
        past = settings.past_load_weight * self._band(self.past_scaled, *settings.past_load)
        future = settings.future_load_weight * self._band(self.future_scaled, *settings.future_load)
        return int((past + future) // (settings.past_load_weight + settings.future_load_weight))

    def _band(self, average_scaled: int, least: int, most: int) -> int:
        above, bands = (average_scaled >> FRACTION_BITS) - least, self.settings.load_bands
        return int(min(max(above, 0) * bands // (most - least), bands - 1))
