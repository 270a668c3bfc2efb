"""The published cases hold."""

import pytest

from collectives.conformance import cases
from foundation.cases import Case


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_case_falls_in_its_band(case: Case) -> None:
    """What `fabrictune conformance` will print as passed."""
    assert case.low <= case.run() <= case.high
