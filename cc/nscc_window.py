"""Window of NSCC: what the network's delay is measured by, growth, the cut, and quick adapt.

Functions of the law `cc/nscc.py` on its parameters and a flow's record; names in brackets are the specification's.

Source: Ultra Ethernet Specification 1.0, sections 3.6.13.5 and 3.6.13.6.
"""

from typing import Any

PS_PER_SECOND = 1e12
REFERENCE_RTT_PS = 12_000_000  # of the network for which the increases are given: 100 Gb/s, 12 us
REFERENCE_BDP_BYTES = 150_000.0


def note_round_trip(params: Any, flow: Any, rtt_ps: int) -> None:
    """Take a shorter round trip for the unloaded one (update_base_rtt)."""
    if rtt_ps < flow.least_rtt_ps:
        flow.least_rtt_ps = rtt_ps
        bound_window(params, flow)


def bound_window(params: Any, flow: Any) -> None:
    """Set the largest window by the least round trip seen (MaxWnd)."""
    most_bytes = params.max_window_fraction * flow.line_rate_bps * flow.least_rtt_ps / (8 * PS_PER_SECOND)
    flow.max_cwnd_bytes = max(most_bytes, float(flow.mtu_bytes))


def note_delay(params: Any, flow: Any, delay_ps: float, is_ecn_marked: int) -> None:
    """Move the mean delay (update_delay): an unmarked packet's queue is gone, and its delay counts little."""
    seen_ps = float(delay_ps)
    if is_ecn_marked == 0 and delay_ps > flow.target_ps:
        seen_ps = 0.25 * flow.least_rtt_ps
    flow.mean_delay_ps += params.delay_gain * (seen_ps - flow.mean_delay_ps)


def quick_adapt(params: Any, flow: Any, now_ps: int, is_ecn_marked: int, delay_ps: float) -> int:
    """Set the window to what arrived where far too little did; return 1 if so, or while marks count for nothing."""
    is_done = 0
    if is_ecn_marked == 1 and flow.ignored_bytes < flow.bytes_to_ignore:
        is_done = 1
    elif now_ps >= flow.adapt_ps:
        is_bad = flow.has_trim == 1 or delay_ps > params.quick_adapt_delay_factor * flow.target_ps
        if flow.adapt_ps > 0 and is_bad and flow.arrived_bytes < params.quick_adapt_fraction * flow.max_cwnd_bytes:
            flow.cwnd_bytes = max(flow.arrived_bytes, float(flow.mtu_bytes))
            flow.bytes_to_ignore = flow.in_flight_bytes
            flow.ignored_bytes = 0.0
            flow.has_trim = 0
            is_done = 1
        flow.arrived_bytes = 0.0
        flow.adapt_ps = now_ps + flow.least_rtt_ps + int(flow.target_ps)
    if is_done == 1:
        flow.growth_bytes2 = 0.0
        flow.unadjusted_bytes = 0.0
    return is_done


def increase_in_proportion(params: Any, flow: Any, acked_bytes: int, delay_ps: float) -> None:
    """Grow by what is left of the target (proportional_increase), or fast after a window without delay."""
    if delay_ps < params.clear_delay_ps:
        flow.clear_bytes += acked_bytes
        if flow.clear_bytes > flow.cwnd_bytes or flow.is_fast == 1:
            grown_bytes = flow.cwnd_bytes + acked_bytes * params.fast_increase_fraction * flow.scaling
            flow.cwnd_bytes = min(grown_bytes, flow.max_cwnd_bytes)
            flow.is_fast = 1
            return
    else:
        flow.clear_bytes = 0.0
    flow.is_fast = 0
    step_bytes = params.proportional_increase_packets * flow.mtu_bytes * flow.scaling
    left = (flow.target_ps - delay_ps) / REFERENCE_RTT_PS  # scaling_b / target_qdelay is one over the reference's
    flow.growth_bytes2 += step_bytes * left * acked_bytes


def decrease(params: Any, flow: Any, now_ps: int) -> None:
    """Cut by the mean delay's excess (multiplicative_decrease)."""
    flow.is_fast = 0
    flow.clear_bytes = 0.0
    if flow.mean_delay_ps > flow.target_ps and now_ps - flow.last_decrease_ps > flow.least_rtt_ps:
        excess = (flow.mean_delay_ps - flow.target_ps) / flow.mean_delay_ps
        kept = max(1 - params.decrease_factor * excess, params.min_kept_fraction)
        flow.cwnd_bytes = max(flow.cwnd_bytes * kept, float(flow.mtu_bytes))
        flow.last_decrease_ps = now_ps


def add_growth(params: Any, flow: Any, now_ps: int, is_late: bool) -> None:
    """Add gathered growth (fulfill_adjustment)."""
    grown_bytes = flow.cwnd_bytes + flow.growth_bytes2 / flow.cwnd_bytes
    if is_late:
        flow.last_adjust_ps = now_ps
        grown_bytes += params.steady_increase_packets * flow.mtu_bytes * flow.scaling
    flow.cwnd_bytes = min(grown_bytes, flow.max_cwnd_bytes)
    flow.growth_bytes2 = 0.0
    flow.unadjusted_bytes = 0.0
