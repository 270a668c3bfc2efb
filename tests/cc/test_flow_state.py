"""Parameters and flow records."""

import pytest

from fabrictune.cc import dcqcn, none
from fabrictune.cc.flow_state import flow_dtype, params_record
from fabrictune.foundation.errors import LawError


def test_a_flow_begins_with_the_engines_header_of_72_bytes():
    """2 rates of 8 B, 4 deadlines, line rate and round trip, two counts of 4 B: 16 + 32 + 16 + 8."""
    assert flow_dtype(none).itemsize == 72
    fields = flow_dtype(dcqcn).fields
    assert fields is not None
    assert fields["target_rate_bps"][1] == 72


def test_settings_override_defaults():
    """What is not named keeps its default."""
    params = params_record(dcqcn, {"alpha_gain": 0.0625, "rate_timer_ps": 300_000_000})
    assert params["alpha_gain"][0] == 0.0625
    assert params["rate_timer_ps"][0] == 300_000_000
    assert params["fast_recovery_stages"][0] == 5


def test_a_law_without_parameters_still_has_a_record():
    """C knows no empty struct."""
    assert params_record(none).itemsize == 8


def test_unknown_parameters_get_the_nearest():
    """Both mistakes are told at once."""
    with pytest.raises(LawError) as raised:
        params_record(dcqcn, {"alpha_gian": 0.1, "rate_timer_ps": 1})
    unknown, out_of_range = raised.value.mistakes
    assert (unknown.found, unknown.nearest) == ("unknown parameter 'alpha_gian'", "alpha_gain")
    assert str(out_of_range) == (
        "law dcqcn: rate_timer_ps: 1\n"
        "  allowed: a whole number from 1e+06 to 1e+12 (T: time between two increases by the timer)"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 2, True, "0.5", None])
def test_what_is_no_number_in_range_is_refused(value):
    """alpha_gain lies between 2**-16 and 1."""
    with pytest.raises(LawError):
        params_record(dcqcn, {"alpha_gain": value})


def test_a_count_is_whole():
    """Half a stage is none."""
    with pytest.raises(LawError):
        params_record(dcqcn, {"fast_recovery_stages": 1.5})
    assert params_record(dcqcn, {"fast_recovery_stages": 3.0})["fast_recovery_stages"][0] == 3


def test_a_law_without_parameters_says_so():
    """There is nothing to be near to."""
    with pytest.raises(LawError) as raised:
        params_record(none, {"rate": 1})
    assert str(raised.value) == "law none: unknown parameter 'rate'\n  allowed: none: this law has no parameters"
