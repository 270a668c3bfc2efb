"""The estimate of a run's memory counts what skip keeps."""

import subprocess
import sys
from typing import Literal

import pytest

from fabrictune.netsim.memory import estimated_bytes
from tests.skip.memory_probe import inputs_of


def measured_bytes(mode: str) -> int:
    """Return what the simulation takes in a process of its own; with skip, it sleeps."""
    command = [sys.executable, "-m", "tests.skip.memory_probe", mode]
    taken_bytes, num_skipped = map(int, subprocess.check_output(command, text=True).split())
    assert (num_skipped > 0) == (mode != "off")
    return taken_bytes


@pytest.mark.parametrize("mode", ["exact", "bounded"])
def test_the_estimate_counts_what_skip_keeps(mode: Literal["exact", "bounded"]) -> None:
    """A ring of 2,048 NICs: what the simulation takes more with skip than without lies within the estimate."""
    estimated = estimated_bytes(inputs_of(mode)) - estimated_bytes(inputs_of("off"))
    measured = measured_bytes(mode) - measured_bytes("off")
    assert 0 < measured < estimated
