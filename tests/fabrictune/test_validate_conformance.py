"""The published cases hold."""

import pytest

from fabrictune.validate.conformance import cases
from foundation.cases import Case


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_simulated_ring_keeps_its_closed_form(case: Case) -> None:
    """Nothing shares a link on one switch, so the engine must come within 3 % of 2(n - 1)/n S / rate and latency."""
    assert case.low <= case.run() <= case.high
