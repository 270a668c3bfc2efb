"""Default steps of a law on links of another rate."""

from types import ModuleType

import pytest

from fabrictune.cc import dcqcn, hpcc, timely
from fabrictune.cc.laws import LAWS
from fabrictune.cc.tuning import tuning_note


def defaults(module: ModuleType) -> dict[str, float]:
    return {one.name: one.default for one in module.PARAMETERS}


def test_default_steps_on_links_of_another_rate_are_noted_with_the_answer() -> None:
    """DCQCN's 40 Mbps is a thousandth of 40 Gbps; at 100 Gbps in proportion 100 Mbps."""
    assert tuning_note("dcqcn", dcqcn, defaults(dcqcn), 100e9) == (
        "law dcqcn: additive_increase 40 Mbps, hyper_increase 200 Mbps of its defaults are for links of 40 Gbps (the "
        "testbed of Zhu et al., SIGCOMM 2015, section 6), not of 100 Gbps; in proportion, law.parameters "
        "{additive_increase: 100 Mbps, hyper_increase: 500 Mbps}; or law dcqcn_firmware, the form that NICs run"
    )
    assert "additive_increase: 400 Mbps" in tuning_note("timely", timely, defaults(timely), 400e9)


@pytest.mark.parametrize("rate_bps", [25e9, 40e9, 79e9])
def test_links_of_about_that_rate_are_not(rate_bps: float) -> None:
    """Within a factor of two."""
    assert tuning_note("dcqcn", dcqcn, defaults(dcqcn), rate_bps) == ""


def test_steps_that_were_set_are_not() -> None:
    """One that was left is."""
    parameters = defaults(dcqcn) | {"additive_increase_bps": 100e6}
    assert tuning_note("dcqcn", dcqcn, parameters, 100e9).startswith("law dcqcn: hyper_increase 200 Mbps of its")
    assert tuning_note("dcqcn", dcqcn, parameters | {"hyper_increase_bps": 5e8}, 100e9) == ""


def test_a_law_without_such_steps_says_nothing() -> None:
    """Nor is a step named that a law does not have."""
    assert tuning_note("hpcc", hpcc, defaults(hpcc), 400e9) == ""
    for law in LAWS.values():
        tuned = getattr(law, "TUNED_FOR", None)
        assert tuned is None or set(tuned.steps) <= set(defaults(law))
