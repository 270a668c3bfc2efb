"""The distribution of a step over where slow hosts are, against arithmetic."""

import pytest

from fabrictune.trainer_probe.prediction.stragglers import mean_s, outcomes, quantile_s


def test_the_slowest_place_with_a_slow_host_decides() -> None:
    """Two places of one host each, half of which are slow: 12 s in half of all cases, 11 s in a quarter."""
    found = outcomes(10.0, [11.0, 12.0], 1.0, 0.5)
    assert [(outcome.step_s, outcome.probability) for outcome in found] == [(12.0, 0.5), (11.0, 0.25), (10.0, 0.25)]
    assert mean_s(found) == 11.25
    assert [quantile_s(found, share) for share in (0.25, 0.5, 0.51, 1.0)] == [10.0, 11.0, 12.0, 12.0]


def test_many_hosts_make_a_slow_one_likely() -> None:
    """0.5 % of 192 hosts at a place: one is slow in 62 % of all cases."""
    found = outcomes(10.0, [11.0], 192, 0.005)
    assert found[0].probability == pytest.approx(1 - 0.995**192)


def test_without_slow_hosts_a_step_has_one_time() -> None:
    """Whether none is slow, or none of them slower."""
    assert [outcome.step_s for outcome in outcomes(10.0, [11.0], 192, 0.0)] == [10.0]
    assert mean_s(outcomes(10.0, [], 192, 0.005)) == pytest.approx(10.0)
