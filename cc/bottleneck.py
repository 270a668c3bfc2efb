"""Bottleneck of one queue, N flows and one law: the smallest closed loop, to find the equilibrium of a law.

Time goes in steps short against the receiver's CNP interval. In a step every flow sends at its rate, the queue grows by
what the port cannot carry, and each flow is marked with the chance that RED marks at least one of its packets; a marked
flow gets at most one CNP per interval. The law is the real one, called event by event.

Left out: packets, propagation, pauses and losses, which are the packet engine's business; acknowledgements, so that a
law that listens to them learns nothing here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabrictune.cc.flow_state import Record, new_flow
from fabrictune.cc.interface import NEVER, NUM_TIMERS, Status
from fabrictune.cc.interpreter import CallableLaw
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import jain_fairness_index
from fabrictune.foundation.seeds import stream

_PS_PER_SECOND = 1e12


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """A port with RED marking, and how the receivers behind it send CNPs."""

    capacity_bps: float
    packet_bytes: int
    kmin_bytes: float
    kmax_bytes: float
    pmax_fraction: float
    cnp_interval_ps: int
    step_ps: int = 2_000_000


@dataclass(frozen=True, kw_only=True)
class BottleneckResult:
    """Means over the observed part of a run."""

    rate_bps_F: FloatArray
    queue_bytes: float

    @property
    def fairness(self) -> float:
        """Jain's index: 1 where all flows are equal, 1/F where one has everything."""
        return jain_fairness_index(self.rate_bps_F)


def run_bottleneck(
    law: CallableLaw,
    bottleneck: Bottleneck,
    *,
    first_rate_bps: Sequence[float],
    settle_ps: int,
    observe_ps: int,
    seed: int,
) -> BottleneckResult:
    """Return the means after `settle_ps`, over `observe_ps`, of flows that start at `first_rate_bps`, one each."""
    flows = [_Flow(law, bottleneck, rate_bps) for rate_bps in first_rate_bps]
    random = stream(seed, "cc", "bottleneck")
    step_ps = bottleneck.step_ps
    num_settle, num_steps = settle_ps // step_ps, (settle_ps + observe_ps) // step_ps
    rate_sum_F, queue_sum, queue_bytes = np.zeros(len(flows)), 0.0, 0.0
    for step in range(num_steps):
        now_ps = (step + 1) * step_ps
        sent_bytes = [flow.send(now_ps, step_ps) for flow in flows]
        drained_bytes = bottleneck.capacity_bps * step_ps / _PS_PER_SECOND / 8
        queue_bytes = max(0.0, queue_bytes + sum(sent_bytes) - drained_bytes)
        spared = 1 - _mark_fraction(bottleneck, queue_bytes)
        for flow, sent, draw in zip(flows, sent_bytes, random.random(len(flows)), strict=True):
            flow.receive(now_ps, is_marked=draw >= spared ** (sent / bottleneck.packet_bytes))
        if step >= num_settle:
            rate_sum_F += [flow.rate_bps for flow in flows]
            queue_sum += queue_bytes
    num_observed = num_steps - num_settle
    return BottleneckResult(rate_bps_F=rate_sum_F / num_observed, queue_bytes=queue_sum / num_observed)


def _mark_fraction(bottleneck: Bottleneck, queue_bytes: float) -> float:
    """RED: none below kmin, all above kmax, a line from 0 to pmax between."""
    if queue_bytes <= bottleneck.kmin_bytes:
        return 0.0
    if queue_bytes > bottleneck.kmax_bytes:
        return 1.0
    share = (queue_bytes - bottleneck.kmin_bytes) / (bottleneck.kmax_bytes - bottleneck.kmin_bytes)
    return bottleneck.pmax_fraction * share


class _Flow:
    """One sender and its receiver."""

    def __init__(self, law: CallableLaw, bottleneck: Bottleneck, first_rate_bps: float) -> None:
        self._law = law
        self._cnp_interval_ps = bottleneck.cnp_interval_ps
        self._next_cnp_ps = 0
        self._unsent_bytes = 0.0
        self._record: Record = new_flow(law.flow_dtype, line_rate_bps=bottleneck.capacity_bps)
        self._call("on_start", 0)
        self._record["rate_bps"] = first_rate_bps

    @property
    def rate_bps(self) -> float:
        return float(self._record["rate_bps"][0])

    def send(self, now_ps: int, step_ps: int) -> float:
        """Send for one step, then let the timers that are due expire; returns the bytes sent."""
        self._unsent_bytes += self.rate_bps * step_ps / _PS_PER_SECOND / 8
        sent_bytes = int(self._unsent_bytes)
        self._unsent_bytes -= sent_bytes
        self._call("on_send", now_ps, sent_bytes)
        for timer in range(NUM_TIMERS):
            if self._record["deadline_ps"][0, timer] <= now_ps:
                self._record["deadline_ps"][0, timer] = NEVER
                self._call("on_timer", now_ps, timer)
        return sent_bytes

    def receive(self, now_ps: int, *, is_marked: bool) -> None:
        """Answer marks with a CNP, unless the last one is too recent."""
        if is_marked and now_ps >= self._next_cnp_ps:
            self._next_cnp_ps = now_ps + self._cnp_interval_ps
            self._call("on_cnp", now_ps)

    def _call(self, event: str, *arguments: Any) -> None:
        status = self._law.call(event, self._record, *arguments)
        assert status == Status.OK, f"{event} returned {status.name}"
