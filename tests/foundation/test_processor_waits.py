"""How long threads waited for a processor."""

import os
import threading
from pathlib import Path

import pytest

from fabrictune.foundation.processor_waits import waited_s


def test_threads_that_share_one_processor_wait() -> None:
    """Two processes on one processor: each waits while the other computes. A process that has ended counts nothing."""
    ours = os.sched_getaffinity(0)
    before = waited_s([os.getpid()])
    if not before and not Path("/proc/self/schedstat").exists():
        pytest.skip("the kernel keeps no scheduling statistics")
    os.sched_setaffinity(0, {min(ours)})
    try:
        child = os.fork()
        if child == 0:
            while True:
                pass
        while waited_s([os.getpid()]) <= before:
            threading.Event().is_set()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.sched_setaffinity(0, ours)
    assert waited_s([child]) == 0.0
