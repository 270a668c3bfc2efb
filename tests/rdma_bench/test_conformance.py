"""The published cases of the package."""

import pytest

from rdma_bench.conformance import cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_claim_holds(case):
    """What `fabrictune conformance` prints must lie in its band."""
    assert case.low <= case.run() <= case.high


def test_names_begin_with_the_package():
    """Reports group cases by that name, and no two may share one."""
    names = [case.name for case in cases()]
    assert all(name.startswith("rdma_bench.") for name in names)
    assert len(set(names)) == len(names)
