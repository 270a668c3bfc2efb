"""Limits against hanging grow with the scale that the environment sets."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.time_limits import SCALE_VARIABLE, scaled


@pytest.mark.parametrize(("text", "limit_s"), [("", 30.0), ("1", 30.0), ("2.5", 75.0)])
def test_a_limit_is_multiplied(text: str, limit_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """2.5 times 30 s is 75 s; an empty variable is none."""
    monkeypatch.setenv(SCALE_VARIABLE, text)
    assert scaled(30) == limit_s


@pytest.mark.parametrize("text", ["0.5", "31", "nan", "twice"])
def test_a_scale_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter limits would end what only takes its time; without an end they would guard against nothing."""
    monkeypatch.setenv(SCALE_VARIABLE, text)
    with pytest.raises(InputError) as caught:
        scaled(30)
    assert str(caught.value) == f"FABRICTUNE_TIMEOUT_SCALE: '{text}'\n  allowed: 1 to 30"
