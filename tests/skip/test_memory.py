"""The estimate of a run's memory counts what exact skip keeps."""

import subprocess
import sys

from fabrictune.netsim.memory import estimated_bytes
from tests.skip.memory_probe import inputs_of


def peak_bytes(mode: str) -> int:
    """Return the largest resident memory of a process that makes the run and simulates it."""
    command = [sys.executable, "-m", "tests.skip.memory_probe", mode]
    return int(subprocess.check_output(command, text=True))


def test_the_estimate_counts_what_skip_keeps() -> None:
    """A ring of 512 NICs with 2,048 packets each: the difference with and without skip, measured, is estimated."""
    estimated = estimated_bytes(inputs_of("exact")) - estimated_bytes(inputs_of("off"))
    measured = peak_bytes("exact") - peak_bytes("off")
    assert 0 < measured < estimated
