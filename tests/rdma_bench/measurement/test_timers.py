"""What a plan of trials comes to, before any device is asked."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.time_limits import SCALE_VARIABLE
from fabrictune.rdma_bench.measurement.timers import TimerPlan
from fabrictune.rdma_bench.verbs.endpoint import ConnectionSpec


def test_repetitions_of_a_setting_are_far_apart() -> None:
    """What changes slowly (a busy host, a warm adapter) falls on all settings alike."""
    plan = TimerPlan(exponents=(14, 18), retries=(2,), num_repetitions=2)
    assert [spec.timeout_exponent for spec, _ in plan.settings()] == [14, 18, 14, 18]
    assert plan.num_trials == 4


def test_a_trial_outlasts_the_slowest_adapter_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """T 20, R 7: 4 times 4.29 s, 7 times, is 120 s; a ConnectX-6 takes 60 s. A low T counts as 16."""
    monkeypatch.delenv(SCALE_VARIABLE)
    plan = TimerPlan(exponents=(14,), retries=(7,))
    assert plan.longest_s(ConnectionSpec(timeout_exponent=20, retries=7)) == pytest.approx(2 + 7 * 4 * 4.294967296)
    assert plan.longest_s(ConnectionSpec(timeout_exponent=8, retries=0)) == pytest.approx(2 + 4 * 0.268435456)


def test_a_flap_needs_commands() -> None:
    """A queue pair that has fallen silent cannot speak again."""
    with pytest.raises(InputError) as caught:
        TimerPlan(exponents=(14,), retries=(2,), cuts_ns=(10**9,))
    assert str(caught.value) == (
        "flap: silence cannot end: it takes commands\n  next: say how: --cut-command and --heal-command"
    )


def test_a_plan_without_end_is_refused() -> None:
    """At most 10,000 trials."""
    with pytest.raises(InputError):
        TimerPlan(exponents=tuple(range(1, 32)), retries=tuple(range(8)), num_repetitions=1000)
