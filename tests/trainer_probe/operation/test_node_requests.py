"""What a backend says of a node counts only while no start of it is under way, and a node is never started twice."""

import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabrictune.trainer_probe.operation.backends.local import LocalBackend
from fabrictune.trainer_probe.operation.node_requests import NodeEnded, NodeRequests, NodeStarted
from tests.patience import patience

SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


@dataclass(kw_only=True)
class Asked:
    """Requests to a backend of this machine, whose starts wait for `may_start`."""

    backend: LocalBackend
    answers: "queue.SimpleQueue[NodeStarted | NodeEnded]" = field(default_factory=queue.SimpleQueue)
    may_start: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.requests = NodeRequests(self.backend, self.command_of, self.answers.put)

    def command_of(self, node: str) -> Sequence[str]:
        assert self.may_start.wait(patience(30))
        return SLEEP

    def started(self) -> NodeStarted:
        answer = self.answers.get(timeout=patience(30))
        assert isinstance(answer, NodeStarted)
        return answer

    def ended(self) -> NodeEnded:
        answer = self.answers.get(timeout=patience(30))
        assert isinstance(answer, NodeEnded)
        return answer


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    asked = Asked(backend=LocalBackend(tmp_path, "job"))
    try:
        yield asked
    finally:
        asked.may_start.set()
        asked.requests.close()
        asked.backend.close()


def test_the_end_of_the_one_before_is_not_that_of_a_node_that_is_being_started(asked: Asked) -> None:
    """The end was seen by asking, and the node is started again when the answer to the request comes."""
    asked.backend.start("node0", SLEEP, {})
    asked.requests.end("node0")
    late = asked.ended()
    assert asked.requests.newly_ended() == {"node0": -9}
    asked.requests.start("node0")
    assert asked.requests.code_of_end(late) is None
    assert asked.requests.newly_ended() == {}
    asked.may_start.set()
    asked.requests.on_started(asked.started())
    assert asked.requests.code_of_end(late) is None, "the new one lives"
    asked.requests.end("node0")
    assert asked.requests.code_of_end(asked.ended()) == -9


def test_a_node_whose_end_is_asked_for_while_it_is_started_is_ended(asked: Asked) -> None:
    """An end that came before its start would find nothing, and the node would stay."""
    asked.requests.start("node0")
    asked.requests.end("node0")
    assert asked.answers.empty()
    asked.may_start.set()
    asked.requests.on_started(asked.started())
    assert asked.requests.code_of_end(asked.ended()) == -9
    assert list(asked.backend.living()) == []


def test_an_end_after_a_start_that_is_refused_has_its_answer(asked: Asked) -> None:
    """The node was never there, and the driver learns that it is not."""
    asked.requests.start("node0")
    asked.requests.end("node0")
    asked.requests.on_started(NodeStarted(node="node0", error=OSError("no quota")))
    assert asked.requests.code_of_end(asked.ended()) == -1
