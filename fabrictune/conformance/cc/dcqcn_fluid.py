"""DCQCN's fluid model: its fixed points, and the motion that ends in them."""

from collections.abc import Callable, Iterator
from functools import cache, partial

from fabrictune.cc.fluid import DcqcnFluid, FixedPoint, solve_fixed_point
from fabrictune.cc.fluid_motion import FluidState, integrate
from fabrictune.foundation.cases import Case, around

CONEXT = "Zhu et al., ECN or Delay, CoNEXT 2016, section 3: root of the fluid model's fixed-point equation"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_fixed_points(), *_fluid_motion())


def paper_fluid(num_flows: int) -> DcqcnFluid:
    """Return DCQCN with the parameters of its paper on a 40 Gb/s port, 1000 B packets."""
    return DcqcnFluid(
        num_flows=num_flows,
        capacity_bps=40e9,
        packet_bytes=1000,
        alpha_timer_ps=55_000_000,
        cnp_interval_ps=50_000_000,
        rate_timer_ps=55_000_000,
        byte_counter_bytes=10_000_000,
        fast_recovery_stages=5,
        additive_increase_bps=40e6,
        kmin_bytes=5_000,
        kmax_bytes=200_000,
        pmax_fraction=0.01,
    )


def timer_only_fluid(num_flows: int) -> DcqcnFluid:
    """Return DCQCN as the public ns-3 models run it at 100 Gb/s (`dcqcn_paper`): no byte counter, one stage."""
    return DcqcnFluid(
        num_flows=num_flows,
        capacity_bps=100e9,
        packet_bytes=1000,
        alpha_timer_ps=50_000_000,
        cnp_interval_ps=50_000_000,
        rate_timer_ps=55_000_000,
        byte_counter_bytes=None,
        fast_recovery_stages=1,
        additive_increase_bps=20e6,
        kmin_bytes=400_000,
        kmax_bytes=1_600_000,
        pmax_fraction=0.2,
    )


# Flows: marking probability, alpha, R_T - R_C in Mb/s (or None), queue in KB (or None), with their digits' precision.
_PAPER_ROWS = {
    2: (0.000777, 0.1014, 218.0, 20.2),
    8: (0.004552, 0.1452, 115.1, 93.8),
    16: (0.010873, 0.1713, 81.8, None),
}
_TIMER_ONLY_ROWS = {
    2: (0.000218, 0.0658, None, 401.3),
    8: (0.001368, 0.1014, None, 408.2),
    32: (0.008502, 0.1536, None, 451.0),
}


def _fixed_points() -> Iterator[Case]:
    for label, fluid, rows in (
        ("40g-paper", paper_fluid, _PAPER_ROWS),
        ("100g-timer-only", timer_only_fluid, _TIMER_ONLY_ROWS),
    ):
        for num_flows, (mark_fraction, alpha, excess_mbps, queue_kb) in rows.items():
            name = f"cc.dcqcn-fixed-point.{label}.{num_flows}-flows"
            solve = partial(solve_fixed_point, fluid(num_flows))
            yield _fixed_point_case(f"{name}.mark", "share", mark_fraction, solve, lambda at: at.mark_fraction)
            yield _fixed_point_case(f"{name}.alpha", "share", alpha, solve, lambda at: at.alpha)
            if excess_mbps is not None:
                yield _fixed_point_case(
                    f"{name}.target-excess", "Mb/s", excess_mbps, solve, lambda at: at.target_excess_bps / 1e6
                )
            if queue_kb is not None:
                yield _fixed_point_case(f"{name}.queue", "KB", queue_kb, solve, lambda at: (at.queue_bytes or 0) / 1e3)


def _fixed_point_case(
    name: str,
    unit: str,
    expected: float,
    solve: Callable[[], FixedPoint],
    pick: Callable[[FixedPoint], float],
) -> Case:
    return Case(name=name, source=CONEXT, unit=unit, run=lambda: pick(solve()), **around(expected, 0.01))


def _fluid_motion() -> Iterator[Case]:
    for num_flows in (2, 8):
        fixed_point = solve_fixed_point(paper_fluid(num_flows))
        assert fixed_point.queue_bytes is not None
        name = f"cc.dcqcn-fluid-motion.40g-paper.{num_flows}-flows"
        source = f"{CONEXT}; the model's equations integrated for 0.3 s from one flow at 40 Gb/s, the others at 5"
        yield Case(
            name=f"{name}.slowest-rate",
            source=source,
            unit="Gb/s",
            run=partial(_settled_slowest_gbps, num_flows),
            **around(fixed_point.rate_bps / 1e9, 0.01),
        )
        yield Case(
            name=f"{name}.queue",
            source=source,
            unit="KB",
            run=partial(_settled_queue_kb, num_flows),
            **around(fixed_point.queue_bytes / 1e3, 0.01),
        )


def _settled_slowest_gbps(num_flows: int) -> float:
    return min(_settled(num_flows).rate_bps) / 1e9


def _settled_queue_kb(num_flows: int) -> float:
    return _settled(num_flows).queue_bytes / 1e3


@cache
def _settled(num_flows: int) -> FluidState:
    first_rate_bps = [40e9, *[5e9] * (num_flows - 1)]
    return integrate(paper_fluid(num_flows), first_rate_bps=first_rate_bps, duration_s=0.3, step_s=10e-6)
