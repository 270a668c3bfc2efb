"""The room's published claims hold."""

import pytest

from foundation.cases import Case
from topology.conformance import cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_case_is_in_its_band(case: Case) -> None:
    """What is computed lies in the band that the case's source allows."""
    assert case.low <= case.run() <= case.high


def test_names_begin_with_the_package_and_differ() -> None:
    """They are keys of the conformance report."""
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    assert all(name.startswith("topology.") for name in names)
