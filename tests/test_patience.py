"""A test that hangs fails, with the place where it stands; one that is stuck outside Python ends the run."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import slowness

WAITING = """
import signal, threading
from tests.patience import hang_guard

def wait_for_ever():
    threading.Event().wait()

{before}
with hang_guard(0.5, 2):
    wait_for_ever()
"""


@pytest.mark.parametrize(
    ("before", "message"),
    [("", "hangs: not over after"), ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])", "Timeout (0:00:01")],
    ids=["in Python", "outside Python"],
)
def test_what_hangs_is_ended_and_its_place_is_printed(before: str, message: str) -> None:
    """A process that waits for ever: by the alarm, or, where that is not heard, by the last resort."""
    ended = subprocess.run(
        [sys.executable, "-c", WAITING.format(before=before)],
        cwd=Path(__file__).parents[1],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "in wait_for_ever" in ended.stderr
    assert message in ended.stderr


def test_no_machine_is_faster_than_a_quiet_one() -> None:
    """Limits are stretched, never shortened."""
    assert slowness() >= 1
