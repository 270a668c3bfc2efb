"""Rules by which defaults follow the link, with numbers worked out by hand."""

from dataclasses import replace
from types import ModuleType

import pytest

from fabrictune.cc import dcqcn, dctcp, hpcc, nscc, swift, timely
from fabrictune.cc.fluid import solve_fixed_point
from fabrictune.cc.interface import Parameter
from fabrictune.cc.laws import LAWS
from fabrictune.cc.link_rules import RED, Link
from fabrictune.conformance.cc.dcqcn_fluid import paper_fluid

LINK = Link(rate_bps=100e9, base_rtt_ps=8_500_000, num_hops=4, mtu_bytes=4096, queue_limit_bytes=1_000_000)


def with_rules(module: ModuleType) -> dict[str, Parameter]:
    return {one.name: one for one in module.PARAMETERS if one.rule}


def values(module: ModuleType, link: Link) -> dict[str, float]:
    settings = {one.name: one.default for one in module.PARAMETERS}
    return {name: one.rule.value(link, settings) for name, one in with_rules(module).items() if one.rule}


def test_dcqcn_s_steps_and_byte_counter_are_shares_of_the_rate() -> None:
    """40 and 200 Mbps of 40 Gbps are 1/1000 and 1/200; 10 MB are 2 ms."""
    assert values(dcqcn, LINK) == pytest.approx(
        {"byte_counter_bytes": 25e6, "additive_increase_bps": 100e6, "hyper_increase_bps": 500e6}, rel=1e-12
    )


def test_dcqcn_s_fluid_model_is_then_the_same_at_every_rate() -> None:
    """Ten times the rate: the same alpha, the same share between target and rate, and as many marks a second."""
    at_40 = paper_fluid(8)
    scaled = values(dcqcn, replace(LINK, rate_bps=400e9))
    at_400 = replace(
        at_40,
        capacity_bps=400e9,
        byte_counter_bytes=int(scaled["byte_counter_bytes"]),
        additive_increase_bps=scaled["additive_increase_bps"],
    )
    slow, fast = solve_fixed_point(at_40), solve_fixed_point(at_400)
    assert fast.alpha == pytest.approx(slow.alpha, rel=0.01)
    assert fast.target_excess_bps == pytest.approx(10 * slow.target_excess_bps, rel=0.01)
    assert fast.mark_fraction == pytest.approx(slow.mark_fraction / 10, rel=0.01)


def test_timely_s_step_follows_the_rate_and_its_delays_do_not() -> None:
    """10 Mbps of 10 Gbps are 400 Mbps of 400."""
    assert values(timely, replace(LINK, rate_bps=400e9)) == pytest.approx({"additive_increase_bps": 400e6})


@pytest.mark.parametrize(("rtt_ps", "period_ps"), [(8_500_000, 9e6), (12_000_000, 13e6), (4_250_000, 5e6), (99, 1e6)])
def test_hpcc_s_t_is_a_little_above_the_longest_round_trip(rtt_ps: int, period_ps: float) -> None:
    """The paper takes 9 us for 8.5 us and 13 us for 12 us."""
    assert values(hpcc, replace(LINK, base_rtt_ps=rtt_ps))["network_rtt_ps"] == period_ps


def test_hpcc_s_step_is_what_a_hundred_flows_may_add() -> None:
    """W_AI = W_init (1 - eta) / N: 5 % of the rate over 100, the authors' 50 Mbps at 100 Gbps."""
    assert values(hpcc, LINK)["additive_increase_bps"] == pytest.approx(0.05 * 100e9 / 100)
    assert values(hpcc, replace(LINK, rate_bps=400e9))["additive_increase_bps"] == pytest.approx(200e6)


def test_swift_s_largest_window_is_above_every_target() -> None:
    """25 us, four hops of 1 us and 100 us of scaling at 400 Gbps are 1574.7 packets; what is set counts."""
    fast = replace(LINK, rate_bps=400e9)
    assert values(swift, fast)["max_cwnd_packets"] == pytest.approx(129e-6 * 400e9 / 8 / 4096)
    rule = with_rules(swift)["max_cwnd_packets"].rule
    settings = {one.name: one.default for one in swift.PARAMETERS} | {"base_target_ps": 125_000_000}
    assert rule
    assert rule.value(fast, settings) == pytest.approx(229e-6 * 400e9 / 8 / 4096)


def test_nscc_s_marking_is_a_share_of_the_bandwidth_delay_product() -> None:
    """0.2 and 0.8 of 150 KB at 100 Gbps over 12 us, the specification's reference network."""
    reference = replace(LINK, base_rtt_ps=12_000_000)
    marking = nscc.MARKING
    assert (marking.kmin_bytes(reference), marking.kmax_factor, marking.pmax_fraction) == (30_000, 4, 1.0)


def test_marking_is_hpcc_s_table_and_dctcp_s_step() -> None:
    """400 KB at 100 Gbps; K 300 KB, or rate times round trip / 7 from 168 us on: 200 us are 357 KB."""
    assert (RED.kmin_bytes(LINK), RED.kmax_factor, RED.pmax_fraction) == (400_000, 4, 0.2)
    assert (dctcp.MARKING.kmin_bytes(LINK), dctcp.MARKING.kmax_factor) == (300_000, 1)
    far = replace(LINK, base_rtt_ps=200_000_000)
    assert dctcp.MARKING.kmin_bytes(far) == pytest.approx(100e9 * 200e-6 / 8 / 7)


@pytest.mark.parametrize(("module", "rate_bps"), [(dcqcn, 40e9), (timely, 10e9)])
def test_on_the_paper_s_own_links_a_rule_gives_the_paper_s_own_numbers(module: ModuleType, rate_bps: float) -> None:
    """So `defaults: paper` and `defaults: link` are one there."""
    given = values(module, replace(LINK, rate_bps=rate_bps))
    assert given == pytest.approx({name: one.default for name, one in with_rules(module).items()})


def test_no_other_law_has_a_rule() -> None:
    """The firmware's defaults are those that NICs ship with, at every rate."""
    assert {name for name, module in LAWS.items() if with_rules(module)} == {"dcqcn", "hpcc", "swift", "timely"}
