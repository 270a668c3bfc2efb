"""Nodes reached by programs: what is too much, too slow or broken off is an answer with its reason."""

import os
import signal
import threading
import tracemalloc

import pytest

from fabrictune.fleet.hosts.host import FleetHost
from fabrictune.fleet.transport.answer import Answer, AskError, Limits, State
from fabrictune.fleet.transport.asking import ask_all
from fabrictune.fleet.transport.processes import ProcessTransport, local_transport
from tests.patience import patience

HOST = FleetHost(name="node1", address="node1")


def state_of(command: str, limits: Limits) -> tuple[State, str]:
    with pytest.raises(AskError) as raised:
        ProcessTransport(("sh", "-c", command), limits).ask(HOST, "", threading.Event())
    return raised.value.state, raised.value.detail


def test_a_hundred_megabytes_of_noise_are_not_kept() -> None:
    """Reading ends at the limit, with no more than a few times that in memory."""
    limits = Limits(max_bytes=2**20)
    tracemalloc.start()
    assert state_of("yes noise | head -c 100000000", limits) == (State.UNUSABLE, "more than 1,048,576 bytes")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 8 * limits.max_bytes


def test_what_ends_early_or_never_says_so() -> None:
    """An exit status, nothing printed, no such program, and a program that waits for ever."""
    assert state_of("echo x; exit 3", Limits()) == (State.ENDED, "exit status 3 after 2 bytes")
    assert state_of("exec tail -f /dev/null", Limits(run_s=0.2)) == (State.TIMED_OUT, "running for 0.2 s")
    with pytest.raises(AskError) as raised:
        ProcessTransport(("no-such-srun",), Limits()).ask(HOST, "", threading.Event())
    assert raised.value.detail == "no-such-srun: No such file or directory"


def test_all_hosts_answer() -> None:
    """More hosts than may be asked at a time: each answers once."""
    answers: list[Answer] = []
    hosts = [FleetHost(name=f"node{number}", address="x") for number in range(9)]
    assert not ask_all(hosts, local_transport(Limits()), "echo hello", parallel=2, on_answer=answers.append)
    assert sorted(answer.name for answer in answers) == [host.name for host in hosts]
    assert {answer.output for answer in answers} == {b"hello\n"}


def test_an_answer_that_is_there_when_ctrl_c_comes_is_kept() -> None:
    """Ctrl-C comes while the first of two is taken and the second is asked: both are given."""
    given: list[str] = []
    is_asked = threading.Event()

    class AtOnce(ProcessTransport):
        def ask(self, host: FleetHost, script: str, stop: threading.Event) -> bytes:
            if host.name == "b":
                is_asked.set()
            return b"answer"

    def on_answer(answer: Answer) -> None:
        if not given:
            assert is_asked.wait(patience(10))
            os.kill(os.getpid(), signal.SIGINT)
        given.append(answer.name)

    hosts = [FleetHost(name=name, address=name) for name in ("a", "b")]
    assert ask_all(hosts, AtOnce(("sh",), Limits()), "", parallel=1, on_answer=on_answer)
    assert sorted(given) == ["a", "b"]
