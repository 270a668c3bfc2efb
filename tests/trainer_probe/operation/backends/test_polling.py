"""A backend that is asked in the background."""

import threading
from collections.abc import Collection, Mapping, Sequence

import pytest

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.backends.polling import PollingBackend


class Controller:
    """A cluster's controller that may be down, and says when it was asked."""

    def __init__(self) -> None:
        self.nodes: dict[str, int | None] = {}
        self.is_down = False
        self.asked = threading.Semaphore(0)

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a node."""
        self.nodes[node] = None

    def end(self, node: str) -> None:
        """End a node."""
        self.nodes[node] = -9

    def ended(self) -> Mapping[str, int]:
        """Return what has ended."""
        self.asked.release()
        if self.is_down:
            raise UnavailableError(Mistake(where="squeue", found="has not answered for 60 s"))
        return {node: code for node, code in self.nodes.items() if code is not None}

    def living(self) -> Collection[str]:
        """Return what has not."""
        return [node for node, code in self.nodes.items() if code is None]

    def close(self) -> None:
        """End all nodes."""
        self.nodes = dict.fromkeys(self.nodes, -9)

    def await_question(self) -> None:
        """Return after the next question but one, by when the one before has been answered."""
        for _ in range(2):
            assert self.asked.acquire(timeout=scaled(30.0))


@pytest.fixture
def controller() -> Controller:
    """Return a controller."""
    return Controller()


def test_what_has_ended_is_heard(controller: Controller) -> None:
    """Without a question of the caller's."""
    backend = PollingBackend(controller, poll_s=0.01)
    backend.start("a", [], {})
    backend.start("b", [], {})
    controller.nodes["a"] = 3
    while not backend.ended():
        controller.await_question()
    assert (backend.ended(), backend.living()) == ({"a": 3}, ["b"])
    backend.close()
    assert backend.living() == []


def test_a_controller_that_is_down_changes_nothing(controller: Controller) -> None:
    """The nodes are as they were last, and the failure is kept."""
    backend = PollingBackend(controller, poll_s=0.01)
    backend.start("a", [], {})
    controller.is_down = True
    while not backend.failure:
        controller.await_question()
    assert (backend.ended(), backend.living()) == ({}, ["a"])
    assert "has not answered" in backend.failure
    backend.close()


def test_an_ended_node_is_known_when_end_returns(controller: Controller) -> None:
    """And forgotten when it starts again, though nobody was asked since."""
    backend = PollingBackend(controller, poll_s=600.0)
    backend.start("a", [], {})
    backend.end("a")
    assert (backend.ended(), backend.living()) == ({"a": -9}, [])
    backend.start("a", [], {})
    assert (backend.ended(), backend.living()) == ({}, ["a"])
    backend.close()
