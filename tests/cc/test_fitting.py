"""Compiled laws whose defaults fit the link."""

from types import ModuleType

import pytest

from fabrictune.cc import dcqcn, dcqcn_firmware, hpcc
from fabrictune.cc.compiler import compile_law, with_settings
from fabrictune.cc.fitting import far_settings_note, fit_law, fitting_note
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.link_rules import Link

LINK = Link(rate_bps=100e9, base_rtt_ps=4_200_000, num_hops=2, mtu_bytes=4096, queue_limit_bytes=10**6)


def fitted(module: ModuleType, *, rate_bps: float = 100e9, **settings: float) -> CompiledLaw:
    link = Link(rate_bps=rate_bps, base_rtt_ps=4_200_000, num_hops=2, mtu_bytes=4096, queue_limit_bytes=10**6)
    return fit_law(compile_law(module, settings), link)


def test_a_compiled_law_has_the_paper_s_numbers_until_it_is_fitted() -> None:
    """And the law that was fitted is another: the first keeps its numbers."""
    law = compile_law(hpcc)
    assert law.params["network_rtt_ps"].item() == 13_000_000
    after = fitted(hpcc)
    assert after.params["network_rtt_ps"].item() == 5_000_000
    assert law.params["network_rtt_ps"].item() == 13_000_000
    assert not after.unset


def test_what_is_set_wins_over_its_rule() -> None:
    """Even where it is the paper's own number; the others follow the link."""
    law = fitted(dcqcn, additive_increase_bps=40e6)
    assert law.params["additive_increase_bps"].item() == 40e6
    assert law.params["hyper_increase_bps"].item() == 500e6
    assert "additive_increase_bps" not in law.derived


def test_a_value_stays_in_its_parameter_s_range() -> None:
    """A thousandth of 1 Mbps is the least step; the byte counter is a whole number."""
    law = fitted(dcqcn, rate_bps=3e4)
    assert law.params["additive_increase_bps"].item() == 1e3
    assert law.params["byte_counter_bytes"].item() == 8
    assert law.params["byte_counter_bytes"].dtype == "i8"


def test_values_are_shown_with_rule_and_source() -> None:
    """Parameters with one rule share its sentence."""
    assert fitting_note(fitted(dcqcn)) == (
        "law dcqcn: byte_counter 25 MB, additive_increase 100 Mbps, hyper_increase 500 Mbps: in proportion to the "
        "NICs' rate from 40 Gbps (Zhu et al., ECN or Delay, CoNEXT 2016, equations 2 to 4, which keep their form)"
    )
    assert fitting_note(fitted(hpcc)) == (
        "law hpcc: additive_increase 50 Mbps: in proportion to the NICs' rate from 100 Gbps (Li et al., SIGCOMM 2019, "
        "section 3.3: W_AI = W_init (1 - eta) / N, N = 100); network_rtt 5 us: the next whole us above the longest "
        "unloaded round trip of a flow (Li et al., SIGCOMM 2019, section 5.1: 9 us for 8.5 us, 13 us for 12 us)"
    )


@pytest.mark.parametrize("module", [dcqcn_firmware])
def test_a_law_without_rules_is_as_it_was(module: ModuleType) -> None:
    """It has no note."""
    law = fitted(module)
    assert fitting_note(law) == ""
    assert law.params == compile_law(module).params


def test_other_settings_open_what_they_leave_out() -> None:
    """A sweep compiles once and sets again: what one point sets is open in the next."""
    law = fitted(dcqcn, additive_increase_bps=40e6)
    again = with_settings(law, dcqcn, {"hyper_increase_bps": 1e9})
    assert [one.name for one in again.unset] == ["byte_counter_bytes", "additive_increase_bps"]
    assert not again.derived


@pytest.mark.parametrize(
    ("network_rtt_ps", "shown"),
    [(1_000_000, "1 us"), (3_000_000, "3 us"), (13_000_000, "13 us"), (100_000_000, "100 us")],
)
def test_a_setting_far_from_its_rule_is_said(network_rtt_ps: int, shown: str) -> None:
    """HPCC's T on a fabric of 4.2 us: less has no effect, more averages over several round trips."""
    assert far_settings_note(compile_law(hpcc, {"network_rtt_ps": network_rtt_ps}), LINK) == (
        f"law hpcc: network_rtt {shown} is set, 5 us fits the link "
        "(the next whole us above the longest unloaded round trip of a flow)"
    )


def test_a_setting_near_its_rule_is_not_said() -> None:
    """4 to 7 us are near 5 us; what is not set has no note of this kind."""
    for network_rtt_ps in (4_000_000, 5_000_000, 7_000_000):
        assert far_settings_note(compile_law(hpcc, {"network_rtt_ps": network_rtt_ps}), LINK) == ""
    assert far_settings_note(compile_law(hpcc), LINK) == ""
    assert far_settings_note(with_settings(compile_law(hpcc), hpcc, {"additive_increase_bps": 0.0}), LINK) == (
        "law hpcc: additive_increase 0 bps is set, 50 Mbps fits the link "
        "(in proportion to the NICs' rate from 100 Gbps)"
    )
