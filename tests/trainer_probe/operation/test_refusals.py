"""A backend that refuses to start or end nodes is asked again, ever more seldom, and not for ever."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.operation import refusals
from fabrictune.trainer_probe.operation.backends.backend import Backend
from fabrictune.trainer_probe.operation.backends.choice import NodeSource
from fabrictune.trainer_probe.operation.backends.local import LocalBackend
from fabrictune.trainer_probe.operation.commands import Command, EndNode, Record, StartNode
from fabrictune.trainer_probe.operation.continuation import Continuation
from fabrictune.trainer_probe.operation.driver_state import JobSettings
from fabrictune.trainer_probe.operation.events import KINDS, Event
from fabrictune.trainer_probe.operation.node_book import NodeBook
from fabrictune.trainer_probe.operation.operating import Operation, operate
from fabrictune.trainer_probe.operation.refusals import LIMIT_S, MAX_REFUSALS
from fabrictune.trainer_probe.operation.run_folder import RunFolder
from fabrictune.trainer_probe.operation.tasks import JobTask
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

QUOTA = "sbatch: error: Job violates accounting/QOS policy"


def make_book(num_nodes: int = 2, num_spares: int = 0) -> NodeBook:
    """Return the book of a job of two ranks, one a node."""
    settings = JobSettings(
        task=JobTask(job="j", generation=0, recipe="tiny"),
        layout=ParallelLayout(dp=2),
        num_nodes=num_nodes,
        num_spares=num_spares,
        num_slots=1,
    )
    return NodeBook(settings, Continuation(), (), 0.0)


def started(commands: Sequence[Command]) -> list[str]:
    return [command.node for command in commands if isinstance(command, StartNode)]


def join(book: NodeBook, node: str, now_s: float) -> None:
    """Let a node say hello."""
    hello = {"node": node, "host": "h", "address": "127.0.0.1", "num_slots": 1, "session": f"{node} {now_s}"}
    book.greet({**hello, "check": {"is_passed": True}, "fence": 0, "copies": ["127.0.0.1", 1]}, now_s, is_over=False)


def record_of(commands: Sequence[Command]) -> Record:
    return next(command for command in commands if isinstance(command, Record))


def test_a_refused_start_is_tried_again_ever_more_seldom_and_then_the_job_stops() -> None:
    """Both nodes are refused each time, which is one attempt: after 1, 2, 4 s and so on; the tenth is the last."""
    book, now_s, waits_s = make_book(), 0.0, []
    for attempt in range(1, MAX_REFUSALS + 1):
        assert book.hopeless() == ""
        assert started(book.keep(now_s)) == ["node0", "node1"]
        assert started(book.keep(now_s)) == [], "under way"
        for node in ("node0", "node1"):
            record = record_of(book.note_refused_start(node, QUOTA, now_s))
            assert tuple(record.values) == KINDS["node not started"]
            assert record.values["attempt"] == attempt
        waits_s.append(record.values["wait_s"])
        assert started(book.keep(now_s + waits_s[-1] - 0.01)) == []
        now_s += waits_s[-1]
    assert waits_s == [2.0**number for number in range(MAX_REFUSALS)]
    assert book.hopeless() == (
        f"no node could be started in 10 attempts: {QUOTA}; "
        "once that is mended, the same command goes on from the newest checkpoint"
    )


def test_a_spare_that_is_refused_stops_nothing() -> None:
    """The job has its nodes; the spare is asked for again, at most every ten minutes."""
    book, now_s = make_book(num_spares=1), 0.0
    book.keep(now_s)
    for node in ("node0", "node1"):
        join(book, node, now_s)
    for _ in range(2 * MAX_REFUSALS):
        record = record_of(book.note_refused_start("node2", QUOTA, now_s))
        now_s += record.values["wait_s"]
        assert started(book.keep(now_s)) == ["node2"]
        assert book.hopeless() == ""
    assert record.values["wait_s"] == LIMIT_S
    assert book["node2"].num_starts == 1, "refused starts are none of its own"


def test_refusals_count_since_a_node_last_joined() -> None:
    """A quota that was lifted and is reached again begins anew."""
    book = make_book()
    book.keep(0.0)
    for now_s in (0.0, 10.0, 20.0):
        book.note_refused_start("node0", QUOTA, now_s)
    join(book, "node1", 30.0)
    assert record_of(book.note_refused_start("node0", QUOTA, 40.0)).values["attempt"] == 1


def test_a_node_that_cannot_be_ended_is_cut_off_after_many_attempts() -> None:
    """It is asked for again while there is hope; then it takes no part any more, and another is started."""
    book, now_s = make_book(), 0.0
    book.keep(now_s)
    join(book, "node0", now_s)
    assert EndNode(node="node0") in book.evict("node0", "link cut")
    for attempt in range(1, MAX_REFUSALS):
        record = record_of(book.note_refused_end("node0", "slurmctld is down", now_s))
        assert tuple(record.values) == KINDS["node not ended"]
        assert record.values["attempt"] == attempt
        assert EndNode(node="node0") not in book.keep(now_s)
        now_s += record.values["wait_s"]
        assert EndNode(node="node0") in book.keep(now_s)
        assert EndNode(node="node0") not in book.keep(now_s), "under way"
    last = book.note_refused_end("node0", "slurmctld is down", now_s)
    assert [command.kind for command in last if isinstance(command, Record)] == ["node not ended", "node evicted"]
    assert book["node0"].life == "evicted"


@dataclass(kw_only=True)
class Refusing:
    """A backend of this machine that refuses so many starts first."""

    backend: Backend
    num_refusals: float
    error: Exception = field(
        default_factory=lambda: UnavailableError(Mistake(where="pod", found="exceeded quota", next_step="ask for more"))
    )

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.num_refusals -= 1
        if self.num_refusals >= 0:
            raise self.error
        self.backend.start(node, command, environment)

    def end(self, node: str) -> None:
        self.backend.end(node)

    def ended(self) -> Mapping[str, int]:
        return self.backend.ended()

    def living(self) -> Collection[str]:
        return self.backend.living()

    def close(self) -> None:
        self.backend.close()


def operation(monkeypatch: pytest.MonkeyPatch, **values: object) -> Operation:
    """Return the operation of a short job whose backend refuses."""

    def open_refusing(source: NodeSource, folder: RunFolder) -> Backend:
        return Refusing(backend=LocalBackend(folder.nodes, folder.job()), **values)  # type: ignore[arg-type]

    monkeypatch.setattr(NodeSource, "open", open_refusing)
    monkeypatch.setattr(refusals, "FIRST_S", 0.001)
    changes = {"num_steps": 2, "degrees.layout": {"dp": 2}, "degrees.virtual": 1}
    recipe = load_recipe(find_recipe("tiny"), changes)
    return Operation(recipe=recipe, recipe_file=str(find_recipe("tiny")), changes=changes, num_nodes=2, num_slots=1)


@pytest.mark.slow
def test_a_job_runs_once_its_nodes_are_granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three requests are refused, and the journal has them with their cause."""
    events: list[Event] = []
    finish = operate(operation(monkeypatch, num_refusals=2), tmp_path / "run", on_event=events.append)
    assert finish.outcome == "finished", finish
    refused = [event.values for event in events if event.kind == "node not started"]
    assert [values["cause"] for values in refused] == ["pod: exceeded quota next: ask for more"] * 2


def test_a_job_without_nodes_stops_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause is the backend's, in its words, with the next step."""
    events: list[Event] = []
    finish = operate(operation(monkeypatch, num_refusals=float("inf")), tmp_path / "run", on_event=events.append)
    assert finish.outcome == "stopped"
    assert finish.cause.startswith("no node could be started in 10 attempts: pod: exceeded quota next: ask for more;")
    assert [event.values["attempt"] for event in events if event.kind == "node not started"][-1] == MAX_REFUSALS
    assert events[-1].values["outcome"] == "stopped"


def test_a_command_that_is_not_there_is_not_tried_again(tmp_path: Path) -> None:
    """No wait mends a wrong --inside."""
    backend = LocalBackend(tmp_path, "job")
    with pytest.raises(InputError) as raised:
        backend.start("node0", ("no-such-command", "x"), {})
    assert str(raised.value) == (
        "command of node0: No such file or directory: no-such-command\n"
        "  next: look at --inside, --node-python and the job's folder"
    )


def test_what_is_no_refusal_ends_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of the user's is told at once."""
    mistake = InputError(Mistake(where="node", found="'a b'"))
    with pytest.raises(InputError, match="node: 'a b'"):
        operate(operation(monkeypatch, num_refusals=2, error=mistake), tmp_path / "run", on_event=lambda event: None)
