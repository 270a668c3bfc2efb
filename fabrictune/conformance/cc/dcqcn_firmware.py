"""The firmware's DCQCN: decay time of alpha, and the resting point of two flows."""

from collections.abc import Iterator
from functools import cache

from fabrictune.cc import dcqcn_firmware
from fabrictune.cc.bottleneck import BottleneckResult
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interpreter import HandCalledLaw, InterpretedLaw
from fabrictune.conformance.cc.dcqcn_fluid import CONEXT, timer_only_fluid
from fabrictune.conformance.cc.two_dcqcn_flows import come_to_rest, two_flow_cases
from fabrictune.foundation.cases import Case, around, exactly

SLOT_PS = 1_000_000
_DOCA = "NVIDIA, DCQCN CC Parameters (DOCA documentation)"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_by_hand(), *_at_a_bottleneck())


def _by_hand() -> Iterator[Case]:
    yield Case(
        name="cc.dcqcn-firmware-alpha-half-life",
        source=f"{_DOCA}: ln 2 / -ln(1019/1024), to the nearest slot of 1 us; the paper's form takes 9.7 ms",
        unit="us",
        run=alpha_half_life_us,
        **exactly(142),
    )
    yield Case(
        name="cc.dcqcn-firmware-first-cut",
        source=f"{_DOCA}: alpha 1023/1024, of which the monitor period of 4 us ends four slots, the first with the CNP",
        unit="of line rate",
        run=rate_after_first_cut,
        **around(1 - ((1023 / 1024) * (1019 / 1024) + 5 / 1024) * (1019 / 1024) ** 3 / 2, 1e-12),
    )


def alpha_half_life_us() -> float:
    """Return after how many slots without a CNP alpha is nearest to half of what it was."""
    law = InterpretedLaw(dcqcn_firmware)
    return min(range(1, 1000), key=lambda slots: abs(_alpha_after(law, slots) - 0.5))


def _alpha_after(law: InterpretedLaw, num_slots: int) -> float:
    """Return what is left of alpha after a slot with a CNP and so many without."""
    flow = new_flow(law.flow_dtype, line_rate_bps=100e9)
    law.call("on_start", flow, 0)
    law.call("on_cnp", flow, 0)
    law.call("on_cnp", flow, SLOT_PS)
    alpha = float(flow["alpha"][0])
    flow["has_cnp_in_slot"] = 0
    law.call("on_cnp", flow, (1 + num_slots) * SLOT_PS)
    return float(flow["alpha"][0]) / alpha


def rate_after_first_cut() -> float:
    """Return the rate at the end of a flow's first monitor period, as a share of line rate."""
    law = InterpretedLaw(dcqcn_firmware)
    flow = new_flow(law.flow_dtype, line_rate_bps=100e9)
    law.call("on_start", flow, 0)
    law.call("on_cnp", flow, 10**12)
    cut_ps = int(flow["deadline_ps"][0, dcqcn_firmware.CUT_TIMER])
    law.call("on_timer", flow, cut_ps, dcqcn_firmware.CUT_TIMER)
    return float(flow["rate_bps"][0] / 100e9)


def _at_a_bottleneck() -> Iterator[Case]:
    source = f"{CONEXT}; with the parameters that the public ns-3 models call dcqcn_paper, from 100 and 10 Gb/s"
    sources = (source, source, f"{source}; the model has no slots")
    return two_flow_cases("cc.dcqcn-firmware-two-flows", timer_only_fluid(2), two_flows, sources=sources)


@cache
def two_flows() -> BottleneckResult:
    """Return the resting point of two flows under the law itself on a 100 Gb/s port.

    Slots and monitor periods are 50 us, there is no byte counter, and hyper increase, of which the model knows nothing,
    is no larger than the other.
    """
    from fabrictune.cc.compiler import compile_law

    fluid = timer_only_fluid(2)
    settings = {
        "dce_tcp_g": 1020,
        "dce_tcp_rtt_ps": fluid.alpha_timer_ps,
        "rate_reduce_monitor_period_ps": fluid.cnp_interval_ps,
        "rpg_time_reset_ps": fluid.rate_timer_ps,
        "rpg_byte_reset_bytes": 0,
        "rpg_threshold": fluid.fast_recovery_stages,
        "rpg_ai_rate_bps": fluid.additive_increase_bps,
        "rpg_hai_rate_bps": fluid.additive_increase_bps,
    }
    law = HandCalledLaw(compile_law(dcqcn_firmware, settings))
    return come_to_rest(law, fluid, [100e9, 10e9], cnp_interval_ps=0, observe_ps=100 * 10**9)
