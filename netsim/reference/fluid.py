"""Reference of a run at max-min shares: all rates anew, in exact fractions, whenever a transfer begins or ends.

The engine's kernel (netsim/engine/fluid) works out only what has changed, in doubles, and keeps bounds; both agree but
for rounding. What a transfer takes that is alone on its path is netsim/ideal.py's.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from fabrictune.topology.reference.fairness import exact_max_min_rates

BIT_PS_PER_BYTE = 8 * 10**12
UNITS_PER_BYTE = 2**50  # what acknowledgements take is counted in these, a picosecond


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What packets are on the wire."""

    mtu_bytes: int
    overhead_bytes: int
    ack_bytes: int
    ack_every_packets: int

    def frame_bytes(self, payload_bytes: int) -> int:
        """Return the bytes of a packet on the wire."""
        return max(payload_bytes + self.overhead_bytes, self.ack_bytes)

    def wire_bytes(self, num_bytes: int) -> int:
        """Return the bytes of a whole transfer on the wire."""
        num_full = max(1, -(-num_bytes // self.mtu_bytes)) - 1
        return num_full * self.frame_bytes(self.mtu_bytes) + self.frame_bytes(num_bytes - num_full * self.mtu_bytes)


@dataclass(kw_only=True)
class Flow:
    """A transfer over the fabric, ready at a time of its own."""

    queue_pair: int
    num_bytes: int
    ready_ps: int
    alone_ps: int
    left_bytes: Fraction = Fraction(0)
    start_ps: int = -1
    finish_ps: int = -1


@dataclass(kw_only=True)
class FluidReference:
    """Transfers without dependencies, at their shares."""

    data: Sequence[Sequence[int]]  # ports of each queue pair's data
    acknowledgements: Sequence[Sequence[int]]
    rate_bps: Sequence[int]  # of each port
    wire: Wire
    sending: dict[int, Flow] = field(default_factory=dict)  # by queue pair

    def run(self, flows: Sequence[Flow]) -> None:
        """Give each flow its start and finish."""
        coming = deque(sorted(flows, key=lambda flow: flow.ready_ps))
        waiting: list[Flow] = []
        now_ps = 0
        while coming or self.sending:
            rates = self._rates()
            ends_ps = {pair: now_ps + self._left_ps(flow, rates[pair]) for pair, flow in self.sending.items()}
            next_ps = min([*ends_ps.values(), *(flow.ready_ps for flow in list(coming)[:1])])
            for pair, flow in self.sending.items():
                flow.left_bytes -= rates[pair] * (next_ps - now_ps)
            now_ps = next_ps
            for pair in [pair for pair, end_ps in ends_ps.items() if end_ps == now_ps]:
                self._end(self.sending.pop(pair), now_ps)
            while coming and coming[0].ready_ps == now_ps:
                waiting.append(coming.popleft())
            for flow in list(waiting):
                if flow.queue_pair not in self.sending:
                    waiting.remove(flow)
                    self._begin(flow, now_ps)

    def _begin(self, flow: Flow, now_ps: int) -> None:
        flow.start_ps = now_ps
        flow.left_bytes = Fraction(self.wire.wire_bytes(flow.num_bytes))
        self.sending[flow.queue_pair] = flow

    def _end(self, flow: Flow, now_ps: int) -> None:
        sending_ps = Fraction(self.wire.wire_bytes(flow.num_bytes)) / self._slowest_rate(flow.queue_pair)
        flow.finish_ps = now_ps + max(flow.alone_ps - math.ceil(sending_ps), 0)

    @staticmethod
    def _left_ps(flow: Flow, rate: Fraction) -> int:
        return math.ceil(max(flow.left_bytes, Fraction(0)) / rate)

    def _slowest_rate(self, pair: int) -> Fraction:
        """Return bytes a picosecond."""
        return Fraction(min(self.rate_bps[port] for port in self.data[pair]), BIT_PS_PER_BYTE)

    def _rates(self) -> dict[int, Fraction]:
        """Return what each queue pair sends, in bytes a picosecond."""
        pairs = list(self.sending)
        taken = dict.fromkeys(range(len(self.rate_bps)), 0)
        for pair in pairs:
            for port in self.acknowledgements[pair]:
                taken[port] += self._acknowledgement_units(pair)
        capacities = [self._capacity_units(port, taken[port]) for port in taken]
        paths = [self.data[pair] for pair in pairs]
        rates = exact_max_min_rates(paths, capacities, [None] * len(pairs), [1] * len(pairs))
        return {pair: rate / (UNITS_PER_BYTE * BIT_PS_PER_BYTE) for pair, rate in zip(pairs, rates, strict=True)}

    def _capacity_units(self, port: int, taken_units: int) -> int:
        whole = self.rate_bps[port] * UNITS_PER_BYTE
        return whole - min(taken_units * BIT_PS_PER_BYTE, whole // 2)

    def _acknowledgement_units(self, pair: int) -> int:
        packets_bytes = self.wire.ack_every_packets * self.wire.frame_bytes(self.wire.mtu_bytes)
        share = Fraction(self.wire.ack_bytes, packets_bytes + self.wire.ack_bytes)
        return round(share * self._slowest_rate(pair) * UNITS_PER_BYTE)
