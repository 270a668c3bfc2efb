"""The published cases of this room hold."""

import math

import pytest

from foundation.cases import Case
from netsim.conformance import cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_claim_holds(case: Case) -> None:
    """Exact claims lie in their bands; figures of other simulators and of hardware may miss, and show as misses."""
    assert case.name.startswith("netsim.")
    got = case.run()
    assert math.isfinite(got)
    assert case.trust != "A" or case.low <= got <= case.high
