"""The published cases hold."""

import pytest

from foundation.cases import Case
from trainer_probe.conformance import cases

pytest.importorskip("torch")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_case_falls_in_its_band(case: Case) -> None:
    """What `fabrictune conformance` will print as passed."""
    assert case.low <= case.run() <= case.high
