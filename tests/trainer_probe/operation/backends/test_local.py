"""Nodes as processes of this machine: one that is ended is noted once, whoever asks, and its successor stays."""

import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from fabrictune.trainer_probe.operation.backends import local
from fabrictune.trainer_probe.operation.backends.local import LocalBackend
from fabrictune.trainer_probe.operation.process_table import in_session
from tests.patience import patience

SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


def test_a_node_that_is_started_again_outlives_the_end_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread ends it; before that returns another has seen the end, and started the node again."""
    has_killed, is_started_again = threading.Event(), threading.Event()

    def look_slowly(session: int) -> Iterable[int]:
        if threading.current_thread() is ending:
            has_killed.set()
            assert is_started_again.wait(patience(30))
        return in_session(session)

    backend = LocalBackend(tmp_path, "job")
    ending = threading.Thread(target=backend.end, args=("node0",))
    monkeypatch.setattr(local, "in_session", look_slowly)
    try:
        backend.start("node0", SLEEP, {})
        ending.start()
        assert has_killed.wait(patience(30))
        assert backend.ended() == {"node0": -9}
        backend.start("node0", SLEEP, {})
        is_started_again.set()
        ending.join()
        assert list(backend.living()) == ["node0"]
        assert backend.ended() == {}
    finally:
        is_started_again.set()
        backend.close()
    assert list(backend.living()) == []
