"""Two flows under either form of DCQCN at one port, compared with the fluid model's fixed point."""

from collections.abc import Callable, Iterator, Sequence

from fabrictune.cc.bottleneck import Bottleneck, BottleneckResult, run_bottleneck
from fabrictune.cc.fluid import DcqcnFluid, solve_fixed_point
from fabrictune.cc.interpreter import CallableLaw
from fabrictune.foundation.cases import Case, around

SETTLE_PS = 100 * 10**9


def two_flow_cases(
    name: str, fluid: DcqcnFluid, run: Callable[[], BottleneckResult], *, sources: tuple[str, str, str]
) -> Iterator[Case]:
    """Yield the cases of the slower rate, the fairness and the queue, each with its source, held against the fluid."""
    rate_source, fairness_source, queue_source = sources
    fixed_point = solve_fixed_point(fluid)
    assert fixed_point.queue_bytes is not None
    yield Case(
        name=f"{name}.rate",
        source=rate_source,
        unit="Gb/s, the slower",
        run=lambda: min(run().rate_bps_F) / 1e9,
        **around(fixed_point.rate_bps / 1e9, 0.05),
    )
    yield Case(
        name=f"{name}.fairness",
        source=fairness_source,
        unit="Jain's index",
        run=lambda: run().fairness,
        expected=1.0,
        low=0.98,
        high=1.0,
    )
    yield Case(
        name=f"{name}.queue",
        source=queue_source,
        unit="KB",
        run=lambda: run().queue_bytes / 1e3,
        **around(fixed_point.queue_bytes / 1e3, 0.15),
        trust="B",
    )


def come_to_rest(
    law: CallableLaw,
    fluid: DcqcnFluid,
    first_rate_bps: Sequence[float],
    *,
    cnp_interval_ps: int,
    observe_ps: int,
) -> BottleneckResult:
    """Run flows at a port that marks as the fluid model's does, and observe them once they have settled."""
    bottleneck = Bottleneck(
        capacity_bps=fluid.capacity_bps,
        packet_bytes=fluid.packet_bytes,
        kmin_bytes=fluid.kmin_bytes,
        kmax_bytes=fluid.kmax_bytes,
        pmax_fraction=fluid.pmax_fraction,
        cnp_interval_ps=cnp_interval_ps,
        step_ps=5_000_000,
    )
    return run_bottleneck(
        law, bottleneck, first_rate_bps=first_rate_bps, settle_ps=SETTLE_PS, observe_ps=observe_ps, seed=1
    )
