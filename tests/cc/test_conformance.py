"""The published cases of the package."""

import math

import pytest

from cc.conformance import cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_claim_holds(case):
    """Exact claims lie in their bands; figures of other simulators and of hardware may miss, and show as misses."""
    got = case.run()
    assert math.isfinite(got)
    assert case.trust != "A" or case.low <= got <= case.high


def test_names_begin_with_the_package():
    """Reports group cases by that name, and no two may share one."""
    names = [case.name for case in cases()]
    assert all(name.startswith("cc.") for name in names)
    assert len(set(names)) == len(names)
