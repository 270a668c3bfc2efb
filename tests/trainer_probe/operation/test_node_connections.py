"""What a driver is connected to: who is read, and that nothing is open when it ends."""

import queue
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fabrictune.trainer_probe.operation.messages import ClosedError, Connection, Listener, connect, listen
from fabrictune.trainer_probe.operation.node_connections import NodeConnections
from tests.patience import patience

WAIT_S = 10.0
Inbox = queue.SimpleQueue[tuple[Connection, Mapping[str, Any] | None]]


@pytest.mark.parametrize("who", ["executor", "driver"])
def test_no_descriptor_is_open_after_the_end_whoever_ends_first(who: str, key: bytes) -> None:
    """Counted while the connections are still referred to: an executor that leaves first is the end of every job."""
    num_before = _num_descriptors()
    inbox = Inbox()
    listener = listen("127.0.0.1", 0, key)
    connections = NodeConnections(listener, lambda connection, values: inbox.put((connection, values)))
    executor = connect(*listener.address, key, timeout_s=patience(WAIT_S))
    executor.send({"kind": "hello"})
    connection, values = inbox.get(timeout=patience(WAIT_S))
    assert values == {"kind": "hello"}
    if who == "executor":
        executor.close()
        assert inbox.get(timeout=patience(WAIT_S)) == (connection, None)
    connections.close()
    executor.close()
    assert _num_descriptors() == num_before


def test_a_peer_that_is_let_in_at_the_end_is_closed_too(listener: Listener, key: bytes) -> None:
    """Also where nobody has read it: many connect while the driver ends."""
    connections = NodeConnections(listener, lambda connection, values: None)
    executors = [connect(*listener.address, key, timeout_s=patience(WAIT_S)) for _ in range(8)]
    connections.close()
    for executor in executors:
        with executor, pytest.raises(ClosedError):
            executor.receive(patience(WAIT_S))


def _num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
