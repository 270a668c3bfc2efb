"""What this package claims, against published results: DCQCN's fixed points, its decay, its first cut, and agreement.

The compiler is imported by the cases that need it, so that listing them is quick.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from types import ModuleType

from cc import dcqcn
from cc.bottleneck import Bottleneck, BottleneckResult, run_bottleneck
from cc.fluid import DcqcnFluid, FixedPoint, solve_fixed_point
from cc.fluid_motion import FluidState, integrate
from cc.interpreting import HandCalledLaw, InterpretedLaw
from cc.loading import LAWS
from cc.records import new_flow
from foundation.cases import Case, around, exactly

_CONEXT = "Zhu et al., ECN or Delay, CoNEXT 2016, section 3: root of the fluid model's fixed-point equation"
_SIGCOMM = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.1"
_INTERFACE = "cc/interface.py: interpreted and compiled runs agree bit for bit"


def cases() -> tuple[Case, ...]:
    """Return the cases of the congestion-control laws."""
    return (*_fixed_points(), *_fluid_motion(), *_dcqcn_by_hand(), *_dcqcn_at_a_bottleneck(), *_agreement())


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
    return Case(name=name, source=_CONEXT, unit=unit, run=lambda: pick(solve()), **around(expected, 0.01))


def _fluid_motion() -> Iterator[Case]:
    for num_flows in (2, 8):
        fixed_point = solve_fixed_point(paper_fluid(num_flows))
        assert fixed_point.queue_bytes is not None
        name = f"cc.dcqcn-fluid-motion.40g-paper.{num_flows}-flows"
        source = f"{_CONEXT}; the model's equations integrated for 0.3 s from one flow at 40 Gb/s, the others at 5"
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


def _dcqcn_by_hand() -> Iterator[Case]:
    for label, alpha_gain, steps in (("paper", 1 / 256, 177), ("firmware-gain", 5 / 1024, 142)):
        yield Case(
            name=f"cc.dcqcn-alpha-half-life.{label}",
            source=f"{_SIGCOMM}, equation 2: ln 2 / -ln(1 - g), to the nearest step",
            unit="alpha timers",
            run=partial(alpha_half_life_steps, alpha_gain),
            **exactly(steps),
        )
    yield Case(
        name="cc.dcqcn-first-cnp-halves",
        source=f"{_SIGCOMM}, equation 1 with alpha 1",
        unit="of line rate",
        run=rate_after_first_cnp,
        **exactly(0.5),
    )


def rate_after_first_cnp() -> float:
    """Return the rate after a flow's first CNP, late in its life, as a share of line rate."""
    law = InterpretedLaw(dcqcn)
    flow = new_flow(law.flow_dtype, line_rate_bps=100e9)
    law.call("on_start", flow, 0)
    law.call("on_cnp", flow, 10**12)
    return float(flow["rate_bps"][0] / 100e9)


def alpha_half_life_steps(alpha_gain: float) -> float:
    """Return after how many alpha timers without a CNP the law's next cut goes by nearest to half of alpha."""
    law = InterpretedLaw(dcqcn, {"alpha_gain": alpha_gain})
    return min(range(1, 1000), key=lambda steps: abs(_alpha_after(law, steps) - 0.5))


def _alpha_after(law: InterpretedLaw, num_steps: int) -> float:
    """Return the alpha that a cut uses so many alpha timers after one that left it at 1."""
    flow = new_flow(law.flow_dtype, line_rate_bps=100e9)
    law.call("on_start", flow, 0)
    law.call("on_cnp", flow, 0)
    rate_bps = float(flow["rate_bps"][0])
    law.call("on_cnp", flow, num_steps * int(law.params["alpha_timer_ps"][0]))
    return 2 * (1 - float(flow["rate_bps"][0]) / rate_bps)


def _dcqcn_at_a_bottleneck() -> Iterator[Case]:
    fixed_point = solve_fixed_point(paper_fluid(2))
    assert fixed_point.queue_bytes is not None
    yield Case(
        name="cc.dcqcn-two-flows.rate",
        source=f"{_CONEXT}: every flow rests at C/N; starting at 40 and 5 Gb/s",
        unit="Gb/s, the slower",
        run=lambda: min(two_flows().rate_bps_F) / 1e9,
        **around(fixed_point.rate_bps / 1e9, 0.05),
    )
    yield Case(
        name="cc.dcqcn-two-flows.fairness",
        source=f"{_CONEXT}: the fixed point is fair",
        unit="Jain's index",
        run=lambda: two_flows().fairness,
        expected=1.0,
        low=0.98,
        high=1.0,
    )
    yield Case(
        name="cc.dcqcn-two-flows.queue",
        source=f"{_CONEXT}; the model decays alpha evenly, the law by whole timers",
        unit="KB",
        run=lambda: two_flows().queue_bytes / 1e3,
        **around(fixed_point.queue_bytes / 1e3, 0.15),
        trust="B",
    )


@cache
def two_flows() -> BottleneckResult:
    """Return where two flows come to rest under the law itself, from 40 and 5 Gb/s, on the paper's 40 Gb/s port."""
    from cc.compiling import compile_law

    fluid = paper_fluid(2)
    law = HandCalledLaw(compile_law(dcqcn, {"decrease_interval_ps": 0}))
    bottleneck = Bottleneck(
        capacity_bps=fluid.capacity_bps,
        packet_bytes=fluid.packet_bytes,
        kmin_bytes=fluid.kmin_bytes,
        kmax_bytes=fluid.kmax_bytes,
        pmax_fraction=fluid.pmax_fraction,
        cnp_interval_ps=fluid.cnp_interval_ps,
        step_ps=5_000_000,
    )
    return run_bottleneck(
        law,
        bottleneck,
        first_rate_bps=[40e9, 5e9],
        settle_ps=100 * 10**9,
        observe_ps=200 * 10**9,
        seed=1,
    )


def _agreement() -> Iterator[Case]:
    for name, module in LAWS.items():
        yield Case(
            name=f"cc.interpreted-equals-compiled.{name}",
            source=_INTERFACE,
            unit="of 5,000 random events that differ",
            run=partial(_count_mismatches, module),
            **exactly(0),
        )


def _count_mismatches(module: ModuleType) -> float:
    from cc.agreement import count_mismatches

    return count_mismatches(module, num_events=5_000, seed=1)
