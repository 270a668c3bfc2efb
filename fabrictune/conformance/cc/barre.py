"""Barre: the resting point of many flows at one queue, against the closed form."""

from functools import cache

from fabrictune.cc import barre
from fabrictune.cc.barre_fluid import BarreFluid, stable_queue_bytes
from fabrictune.cc.bottleneck import Bottleneck, BottleneckResult, run_bottleneck
from fabrictune.cc.interpreter import HandCalledLaw
from fabrictune.foundation.cases import Case, around

CAPACITY_BPS = 100e9
PACKET_BYTES = 1000
KMIN_BYTES, KMAX_BYTES, PMAX_FRACTION = 400_000, 1_600_000, 0.2
STEP_PS = 2_000_000  # twice the spacing of CNPs, which are rarer than that


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*(_stable_queue(num_flows) for num_flows in (8, 16)), _fairness(8))


def _stable_queue(num_flows: int) -> Case:
    queue_bytes = stable_queue_bytes(fluid(num_flows))
    assert queue_bytes is not None
    return Case(
        name=f"cc.barre-stable-queue.{num_flows}-flows",
        source="cc/barre_fluid.py: steps of the rounds between two CNPs add what one CNP takes; without delay",
        unit="KB",
        run=lambda: at_rest(num_flows).queue_bytes / 1e3,
        **around(queue_bytes / 1e3, 0.1),
    )


def _fairness(num_flows: int) -> Case:
    return Case(
        name=f"cc.barre-fairness.{num_flows}-flows",
        source="Barre, USENIX ATC 2025: steps are equal, cuts proportional; 3 ms after one began at three shares",
        unit="Jain's index",
        expected=1.0,
        low=0.98,
        high=1.0,
        run=lambda: at_rest(num_flows).fairness,
    )


def fluid(num_flows: int) -> BarreFluid:
    """Return the closed form's flows: the law's defaults on a 100 Gb/s port, 10 us of round trip."""
    return BarreFluid(
        num_flows=num_flows,
        capacity_bps=CAPACITY_BPS,
        packet_bytes=PACKET_BYTES,
        rtt_ps=10_000_000,
        kmin_bytes=KMIN_BYTES,
        kmax_bytes=KMAX_BYTES,
        pmax_fraction=PMAX_FRACTION,
    )


@cache
def at_rest(num_flows: int) -> BottleneckResult:
    """Return the resting point of the flows under the law itself, one of them started at three times its share."""
    from fabrictune.cc.compiler import compile_law

    share_bps = CAPACITY_BPS / num_flows
    bottleneck = Bottleneck(
        capacity_bps=CAPACITY_BPS,
        packet_bytes=PACKET_BYTES,
        kmin_bytes=KMIN_BYTES,
        kmax_bytes=KMAX_BYTES,
        pmax_fraction=PMAX_FRACTION,
        cnp_interval_ps=1_000_000,
        step_ps=STEP_PS,
    )
    return run_bottleneck(
        HandCalledLaw(compile_law(barre)),
        bottleneck,
        first_rate_bps=[3 * share_bps, *[share_bps] * (num_flows - 1)],
        settle_ps=3 * 10**9,
        observe_ps=2 * 10**9,
        seed=1,
    )
