"""Settings of the rules, and limits from measurements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.operation.observations import Snapshot
from fabrictune.trainer_probe.operation.rules import RuleSettings
from fabrictune.trainer_probe.operation.rules.thresholds import measure_limits


def make_snapshot(step_s: tuple[float, ...], save_s: tuple[float, ...] = ()) -> Snapshot:
    """Return measurements without nodes."""
    return Snapshot(generation=1, nodes=(), node_of_rank={}, groups={}, step_s=step_s, save_s=save_s)


def test_mistakes_are_reported_together() -> None:
    """An unknown name has the nearest, and a value that is no limit says what is allowed."""
    with pytest.raises(InputError) as raised:
        RuleSettings.of({"hang_median": 3, "window_s": -1.0, "node_faults": 2.5, "busy_factor": True})
    text = str(raised.value)
    assert "rules.hang_median: unknown key\n  did you mean 'hang_medians'?" in text
    for name, value in (("window_s", "-1.0"), ("node_faults", "2.5"), ("busy_factor", "True")):
        assert f"rules.{name}: {value}\n  allowed: a finite number, 0 or more" in text


def test_values_keep_their_kind() -> None:
    """A count stays a whole number, a limit becomes a float."""
    settings = RuleSettings.of({"node_faults": 2.0, "window_s": 60})
    assert (settings.node_faults, settings.window_s) == (2, 60.0)
    assert isinstance(settings.node_faults, int)


def test_limits_before_anything_is_measured() -> None:
    """The floors of the sections hold; a hang within a step may be a first step's compilation."""
    limits = measure_limits(make_snapshot(()), RuleSettings())
    assert (limits.hang_s, limits.stopped_s, limits.save_s, limits.first_step_s) == (600.0, 5.0, 60.0, 600.0)


def test_limits_of_measured_steps() -> None:
    """Median 2, deviations 0.1: 10 * 2 + 10 * 1.4826 * 0.1 = 21.48 s; one step of 60 s changes nothing."""
    limits = measure_limits(make_snapshot((1.9, 2.0, 2.1, 2.0, 1.9, 2.1, 60.0)), RuleSettings())
    assert limits.hang_s == pytest.approx(21.4826)
    assert limits.stopped_s == 4.0


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=40), st.floats(1.0, 10.0))
def test_limits_follow_the_steps(steps_s: list[float], factor: float) -> None:
    """Slower steps have no shorter limits, and none is under its floor."""
    settings = RuleSettings()
    limits = measure_limits(make_snapshot(tuple(steps_s)), settings)
    slower = measure_limits(make_snapshot(tuple(value * factor for value in steps_s)), settings)
    assert slower.hang_s >= limits.hang_s * (1 - 1e-9) >= settings.hang_floor_s * (1 - 1e-9)
    assert slower.stopped_s >= limits.stopped_s * (1 - 1e-9)
