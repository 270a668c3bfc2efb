"""The nodes of a validation as its controller sees them: a program on each, orders to many at once, who is missing.

A node that does not start, ends, or is silent beyond an order's limit is *missing* from then on, with the reason; the
others go on. Closing the crew ends the programs' input, and with it everything they run.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fabrictune.fleet.collect.collection import Collection, Collector, NodeState
from fabrictune.fleet.transport.answer import Answer as NodeAnswer
from fabrictune.fleet.transport.answer import AskError, State
from fabrictune.fleet.transport.asking import Program
from fabrictune.foundation.children import module_command
from fabrictune.foundation.time_limits import scaled
from fabrictune.validate.cluster.nodes.wire import BEAT_S, STILL_THERE, LineReader, WireError, encode

NODE_PROCESS = "fabrictune.validate.cluster.nodes.node_process"
READ_S = 60.0  # for the script of `fleet collect`
WAIT_S = 0.5  # so that Ctrl-C is seen

Start = Callable[[str, Sequence[str]], Program]  # a program on a node by its name; raises AskError
Collect = Callable[[str], Collection]  # what the nodes say to "settings" or "counters"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a node answered to an order."""

    result: Any = None
    error: str = ""


class Crew:
    """The nodes that take part, by name."""

    def __init__(
        self,
        names: Sequence[str],
        start: Start,
        *,
        collect: Collect | None = None,
        python: str,
        parallel: int,
        start_s: float,
    ) -> None:
        self.names, self._collect, self._start_s = tuple(names), collect, start_s
        self.missing: dict[str, NodeState] = {}
        self._start, self._words, self._parallel = start, module_command(NODE_PROCESS, python=python), parallel
        self._nodes: dict[str, _Node] = {}
        self._beating = threading.Event()

    @property
    def present(self) -> tuple[str, ...]:
        """The nodes that answer."""
        return tuple(name for name in self.names if name in self._nodes)

    def open(self) -> None:
        """Start the program on each node; who does not answer within `start_s` after the login is missing."""
        threading.Thread(target=self._beat, daemon=True).start()  # those that are there wait for those that hang
        with ThreadPoolExecutor(self._parallel, thread_name_prefix="crew") as pool:
            states = list(pool.map(self._open, self.names))
        self.missing = {state.name: state for state in states if state is not None}

    def ask(self, orders: Mapping[str, Mapping[str, Any]], *, limit_s: float) -> dict[str, Answer]:
        """Give each node its order at once, and return the answers of those that gave one within the limit."""
        numbers = {name: self._nodes[name].send(order) for name, order in orders.items() if name in self._nodes}
        ends_s, answers = time.monotonic() + scaled(limit_s), {}
        for name, number in numbers.items():
            node = self._nodes[name]
            answer = node.wait(number, ends_s)
            if answer is None:
                self._lose(name, node.state(f"no answer within {limit_s:.0f} s"))
            else:
                answers[name] = answer
        return answers

    def ask_all(self, order: Mapping[str, Any], *, limit_s: float) -> dict[str, Answer]:
        """Give all nodes one order."""
        return self.ask(dict.fromkeys(self.present, order), limit_s=limit_s)

    def collect(self, questions: str) -> Collection:
        """Return what the nodes say to "settings" or "counters", by their programs or by a way of its own."""
        if self._collect:
            return self._collect(questions)
        collector = Collector()
        order = {"do": "read", "questions": questions, "limit_s": READ_S}
        for name, answer in self.ask_all(order, limit_s=2 * READ_S).items():
            state = State.ENDED if answer.error else State.COLLECTED
            output = str(answer.result or "").encode()
            collector.add(NodeAnswer(name=name, state=state, detail=answer.error, output=output))
        collector.states |= self.missing
        return collector.finish(self.names, is_partial=False)

    def close(self) -> None:
        """End the programs on all nodes."""
        self._beating.set()
        nodes, self._nodes = list(self._nodes.values()), {}
        for node in nodes:
            with suppress(OSError):
                node.send({"do": "end"})
        with ThreadPoolExecutor(self._parallel) as pool:
            list(pool.map(lambda node: node.close(), nodes))

    def _open(self, name: str) -> NodeState | None:
        """Start the program on a node, and return why it is missing; None where it is there."""
        try:
            node = self._nodes[name] = _Node(name, self._start(name, self._words))
        except AskError as error:
            return NodeState(name=name, state=error.state, detail=error.detail)
        if node.greeted(time.monotonic() + self._start_s):
            return None
        del self._nodes[name]
        state = node.state(f"the program did not start within {self._start_s:g} s")
        node.close()
        return state

    def _lose(self, name: str, state: NodeState) -> None:
        self.missing[name] = state
        self._nodes.pop(name).close()

    def _beat(self) -> None:
        while not self._beating.wait(BEAT_S):
            for node in list(self._nodes.values()):
                node.beat()


class _Node:
    """One program, and the answers that came from it."""

    def __init__(self, name: str, program: Program) -> None:
        self._name, self._program = name, program
        self._changed, self._sending = threading.Condition(), threading.Lock()
        self._answers: dict[int, Answer] = {}
        self._next, self._is_greeted, self._end = 0, False, ""
        threading.Thread(target=self._read, daemon=True).start()

    def greeted(self, ends_s: float) -> bool:
        """Return whether the program said hello in time."""
        self._wait_for(lambda: self._is_greeted, ends_s)
        return self._is_greeted

    def send(self, order: Mapping[str, Any]) -> int:
        """Send an order, and return its number; of a program that has ended, none comes back."""
        with self._sending:
            self._next += 1
            with suppress(OSError):
                self._program.send(encode({**order, "number": self._next}))
            return self._next

    def wait(self, number: int, ends_s: float) -> Answer | None:
        """Return the answer to an order, None where the program ends or is silent."""
        self._wait_for(lambda: number in self._answers, ends_s)
        return self._answers.pop(number, None)

    def beat(self) -> None:
        """Say that the controller is there."""
        with self._sending, suppress(OSError):
            self._program.send(STILL_THERE)

    def state(self, otherwise: str) -> NodeState:
        """Return why it is missing."""
        if not self._end:
            return NodeState(name=self._name, state=State.TIMED_OUT, detail=otherwise)
        lines = self._program.last_words().strip().splitlines()
        return NodeState(name=self._name, state=State.ENDED, detail=lines[-1] if lines else self._end)

    def close(self) -> None:
        """End the program."""
        self._program.close()

    def _wait_for(self, is_there: Callable[[], bool], ends_s: float) -> None:
        with self._changed:
            while not is_there() and not self._end and (left_s := ends_s - time.monotonic()) > 0:
                self._changed.wait(min(left_s, WAIT_S))

    def _read(self) -> None:
        reader, end = LineReader(), "the program ended"
        try:
            while data := self._program.receive():
                self._take(reader.feed(data))
        except WireError as error:
            end = f"what it printed is no answer: {error}"
        except OSError as error:
            end = str(error)
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def _take(self, lines: Iterable[Mapping[str, Any]]) -> None:
        for values in lines:
            with self._changed:
                if "hello" in values:
                    self._is_greeted = True
                elif isinstance(number := values.get("number"), int):
                    self._answers[number] = Answer(result=values.get("result"), error=str(values.get("error") or ""))
                self._changed.notify_all()
