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
PARTS_OF_A_TRANSFER = 256  # by which its end may be late in a crowd
LEAST_SLOWER, LEAST_FASTER = Fraction(71, 100), Fraction(141, 100)  # of what acknowledgements are counted at
MOST_FILLINGS = 16  # at one instant
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
    rate: Fraction = Fraction(0)  # bytes a picosecond
    is_crowded: bool = False
    acknowledgement_units: int = 0
    end_ps: int = -1  # of sending, at this rate
    start_ps: int = -1
    finish_ps: int = -1


@dataclass(kw_only=True)
class FluidReference:
    """Transfers without dependencies, at their shares."""

    data: Sequence[Sequence[int]]  # ports of each queue pair's data
    acknowledgements: Sequence[Sequence[int]]
    rate_bps: Sequence[int]  # of each port
    wire: Wire
    most_uncrowded: int  # flows of a group whose transfers end at any instant
    sending: dict[int, Flow] = field(default_factory=dict)  # by queue pair

    def run(self, flows: Sequence[Flow]) -> None:
        """Give each flow its start and finish."""
        coming = deque(sorted(flows, key=lambda flow: flow.ready_ps))
        waiting: list[Flow] = []
        now_ps = 0
        while coming or self.sending:
            self._share_out(now_ps)
            next_ps = min(
                [flow.end_ps for flow in self.sending.values()] + [flow.ready_ps for flow in list(coming)[:1]]
            )
            for flow in self.sending.values():
                flow.left_bytes -= flow.rate * (next_ps - now_ps)
            now_ps = next_ps
            for pair in [pair for pair, flow in self.sending.items() if flow.end_ps == now_ps]:
                self._end(self.sending.pop(pair), now_ps)
            while coming and coming[0].ready_ps == now_ps:
                waiting.append(coming.popleft())
            for flow in list(waiting):
                if flow.queue_pair not in self.sending:
                    waiting.remove(flow)
                    self._begin(flow, now_ps)

    def _share_out(self, now_ps: int) -> None:
        """Give each flow its rate, and the end of its sending where that is another now."""
        rates = self._settled_rates()
        crowds = self._crowds()
        for pair, flow in self.sending.items():
            if (flow.rate, flow.is_crowded) != (rates[pair], pair in crowds):
                flow.rate, flow.is_crowded = rates[pair], pair in crowds
                flow.end_ps = self._end_of_sending(flow, now_ps)

    def _end_of_sending(self, flow: Flow, now_ps: int) -> int:
        """Return when a flow has sent all; in a crowd a little later, so that those of like transfers fall together."""
        end_ps = now_ps + math.ceil(max(flow.left_bytes, Fraction(0)) / flow.rate)
        if not flow.is_crowded:
            return end_ps
        least_ps = max((end_ps - flow.start_ps) // PARTS_OF_A_TRANSFER, 1)
        step_ps = 1 << (least_ps.bit_length() - 1)
        return -(-end_ps // step_ps) * step_ps

    def _crowds(self) -> set[int]:
        """Return the queue pairs of groups that are crowds: flows that share ports, and those that share with these."""
        left, crowds = set(self.sending), set()
        while left:
            group = {left.pop()}
            ports = set(self.data[next(iter(group))])
            while met := {pair for pair in left if ports & set(self.data[pair])}:
                left -= met
                group |= met
                ports.update(port for pair in met for port in self.data[pair])
            if len(group) > self.most_uncrowded:
                crowds |= group
        return crowds

    def _begin(self, flow: Flow, now_ps: int) -> None:
        flow.start_ps = now_ps
        flow.left_bytes = Fraction(self.wire.wire_bytes(flow.num_bytes))
        flow.acknowledgement_units = round(self._acknowledgement_units(flow.queue_pair))
        self.sending[flow.queue_pair] = flow

    def _end(self, flow: Flow, now_ps: int) -> None:
        sending_ps = Fraction(self.wire.wire_bytes(flow.num_bytes)) / self._slowest_rate(flow.queue_pair)
        flow.finish_ps = now_ps + max(flow.alone_ps - math.ceil(sending_ps), 0)

    def _slowest_rate(self, pair: int) -> Fraction:
        """Return bytes a picosecond."""
        return Fraction(min(self.rate_bps[port] for port in self.data[pair]), BIT_PS_PER_BYTE)

    def _settled_rates(self) -> dict[int, Fraction]:
        """Return what each queue pair sends, in bytes a picosecond, once acknowledgements are counted near it.

        Of a flow whose rate is another now they are counted anew, where that is far from what they are counted at.
        """
        for _ in range(MOST_FILLINGS):
            rates = self._rates()
            is_settled = True
            for pair, flow in self.sending.items():
                units = self._acknowledgement_units(pair) * rates[pair] / self._slowest_rate(pair)
                low, high = (factor * flow.acknowledgement_units for factor in (LEAST_SLOWER, LEAST_FASTER))
                if not low <= units <= high:
                    flow.acknowledgement_units = round(units)
                    is_settled = False
            if is_settled:
                break
        return rates

    def _rates(self) -> dict[int, Fraction]:
        """Return what each queue pair sends with acknowledgements as they are counted, in bytes a picosecond."""
        pairs = list(self.sending)
        taken = dict.fromkeys(range(len(self.rate_bps)), 0)
        for pair, flow in self.sending.items():
            for port in self.acknowledgements[pair]:
                taken[port] += flow.acknowledgement_units
        capacities = [self._capacity_units(port, taken[port]) for port in taken]
        paths = [self.data[pair] for pair in pairs]
        rates = exact_max_min_rates(paths, capacities, [None] * len(pairs), [1] * len(pairs))
        return {pair: rate / (UNITS_PER_BYTE * BIT_PS_PER_BYTE) for pair, rate in zip(pairs, rates, strict=True)}

    def _capacity_units(self, port: int, taken_units: int) -> int:
        whole = self.rate_bps[port] * UNITS_PER_BYTE
        return whole - min(taken_units * BIT_PS_PER_BYTE, whole // 2)

    def _acknowledgement_units(self, pair: int) -> Fraction:
        """Return what acknowledgements take of each port at the full rate of a queue pair."""
        packets_bytes = self.wire.ack_every_packets * self.wire.frame_bytes(self.wire.mtu_bytes)
        share = Fraction(self.wire.ack_bytes, packets_bytes + self.wire.ack_bytes)
        return share * self._slowest_rate(pair) * UNITS_PER_BYTE
