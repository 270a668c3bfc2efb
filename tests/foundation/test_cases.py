"""A conformance case carries its band, and an empty band is a programmer's mistake."""

import pytest

from fabrictune.foundation.cases import Case, around, exactly


def test_a_band_is_a_share_either_side() -> None:
    """1 % of 200 is 2: 198 to 202, whatever the sign."""
    assert around(200.0, 0.01) == {"expected": 200.0, "low": 198.0, "high": 202.0}
    assert around(-200.0, 0.01) == {"expected": -200.0, "low": -202.0, "high": -198.0}
    assert exactly(3.0) == {"expected": 3.0, "low": 3.0, "high": 3.0}


def test_an_empty_band_is_refused() -> None:
    """No value could ever pass it."""
    with pytest.raises(AssertionError, match="x: an empty band"):
        Case(name="x", source="", unit="", expected=1.0, low=2.0, high=1.0, run=lambda: 1.0)
