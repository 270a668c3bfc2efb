"""NCCL's defaults by version."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.timers.nccl_defaults import nccl_default


@pytest.mark.parametrize(
    ("version", "exponent"),
    [
        *(("2.13.4", 14), ("2.14", 18), ("2.14.3", 18), ("2.23.3", 18), ("2.23.4+cuda12.6", 20)),
        *(("v2.30.7", 20), ("2.4.8nvb1", 14)),
    ],
)
def test_the_default_timeout_grew_twice(version: str, exponent: int) -> None:
    """14 to 18 in 2.14, and to 20 in 2.23.4; seven retries all along."""
    spec = nccl_default(version)
    assert (spec.timeout_exponent, spec.retries) == (exponent, 7)


@pytest.mark.parametrize("text", ["", "two", "2", "2.14.3.1", "2." + "9" * 30])
def test_what_is_no_version_is_refused(text: str) -> None:
    """A misread version would name the wrong timeout."""
    with pytest.raises(InputError, match=r"allowed: a version of NCCL"):
        nccl_default(text)
