"""The published cases of this room hold."""

import pytest

from foundation.cases import Case
from netsim.conformance import cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_case_falls_in_its_band(case: Case) -> None:
    """Expected, band and source stand with the case."""
    assert case.name.startswith("netsim.")
    assert case.low <= case.run() <= case.high
