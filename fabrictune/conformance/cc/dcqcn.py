"""DCQCN's decay and its first cut, worked out by hand, and the resting point of two of its flows."""

from collections.abc import Iterator
from functools import cache, partial

from fabrictune.cc import dcqcn
from fabrictune.cc.bottleneck import BottleneckResult
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interpreter import HandCalledLaw, InterpretedLaw
from fabrictune.conformance.cc.dcqcn_fluid import CONEXT, paper_fluid
from fabrictune.conformance.cc.two_dcqcn_flows import come_to_rest, two_flow_cases
from fabrictune.foundation.cases import Case, exactly

_SIGCOMM = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.1"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_by_hand(), *_at_a_bottleneck())


def _by_hand() -> Iterator[Case]:
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


def _at_a_bottleneck() -> Iterator[Case]:
    sources = (
        f"{CONEXT}: every flow rests at C/N; starting at 40 and 5 Gb/s",
        f"{CONEXT}: the fixed point is fair",
        f"{CONEXT}; the model decays alpha evenly, the law by whole timers",
    )
    return two_flow_cases("cc.dcqcn-two-flows", paper_fluid(2), two_flows, sources=sources)


@cache
def two_flows() -> BottleneckResult:
    """Return the resting point of two flows under the law itself, from 40 and 5 Gb/s, on the paper's 40 Gb/s port."""
    from fabrictune.cc.compiler import compile_law

    fluid = paper_fluid(2)
    law = HandCalledLaw(compile_law(dcqcn, {"decrease_interval_ps": 0}))
    return come_to_rest(law, fluid, [40e9, 5e9], cnp_interval_ps=fluid.cnp_interval_ps, observe_ps=200 * 10**9)
