"""The published cases hold."""

import pytest

from fabrictune.validate.conformance import cases
from foundation.cases import Case


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_claim_holds(case: Case) -> None:
    """What `fabrictune conformance` prints must lie in its band."""
    assert case.low <= case.run() <= case.high
