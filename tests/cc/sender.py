"""One flow under a law, its events called by hand."""

from types import ModuleType

from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import NEVER, Status
from fabrictune.cc.interpreter import InterpretedLaw

PACKET_BYTES = 1000
NUM_HOPS = 4


class Sender:
    """A flow at 40 Gb/s, 10 us of unloaded round trip and packets of 1,000 B: 50 of them at line rate."""

    def __init__(self, law: ModuleType, **settings: float) -> None:
        self.law = InterpretedLaw(law, settings)
        self.flow = new_flow(self.law.flow_dtype, line_rate_bps=40e9, mtu_bytes=PACKET_BYTES, num_hops=NUM_HOPS)
        self.call("on_start", 0)

    def call(self, event, *arguments):
        assert self.law.call(event, self.flow, *arguments) == Status.OK

    def acknowledge(self, now_us, rtt_us, *, packets=1, endpoint_us=0, is_marked=0):
        """Take one acknowledgement."""
        times_ps = [round(time_us * 1e6) for time_us in (now_us, rtt_us, endpoint_us)]
        now_ps, rtt_ps, endpoint_ps = times_ps
        self.call("on_ack", now_ps, packets * PACKET_BYTES, rtt_ps, endpoint_ps, NUM_HOPS, is_marked, None)

    def advance(self, until_ps):
        """Let timers expire as an engine does."""
        deadline_ps = self.flow["deadline_ps"][0]
        while (now_ps := int(deadline_ps.min())) <= until_ps:
            timer = int(deadline_ps.argmin())
            deadline_ps[timer] = NEVER
            self.call("on_timer", now_ps, timer)

    def __getattr__(self, field):
        return self.flow[field][0].item() if self.flow[field].ndim == 1 else self.flow[field][0].tolist()
