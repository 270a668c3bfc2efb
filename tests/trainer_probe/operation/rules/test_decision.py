"""Decisions from a diagnosis and a job's history."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.trainer_probe.operation.decisions import Decision, Diagnosis
from fabrictune.trainer_probe.operation.events import KINDS, Event
from fabrictune.trainer_probe.operation.observations import Heartbeat, NodeView
from fabrictune.trainer_probe.operation.rules import (
    RuleSettings,
    conclude_replay,
    decide,
    decision_values,
    fault_values,
)

SETTINGS = RuleSettings()
KILLED = Diagnosis(
    cause="rank killed",
    entity="rank 3",
    ranks=(3,),
    nodes=("b",),
    evidence=("rank 3 was ended by signal 9 (SIGKILL)",),
    quiet_s=0.1,
    is_fatal=True,
    step=7,
    error="signal 9 (SIGKILL)",
)
FAILED = replace(KILLED, cause="rank failed", error="ValueError: shapes (3,) at 0x7f12", evidence=("rank 3 failed",))
NAN = replace(KILLED, cause="not a number", entity="step 7", ranks=(), nodes=("a", "b"), error="loss nan")


class Journal:
    """Events of a job, one second apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, kind: str, **values: Any) -> "Journal":
        """Record an event."""
        number = len(self.events)
        self.events.append(Event(number=number, elapsed_s=float(number), time_ns=0, kind=kind, values=values))
        return self

    def start(self, generation: int, nodes: Sequence[str] = ("a", "b")) -> "Journal":
        """Record the start of a generation."""
        return self.append("generation started", generation=generation, nodes=list(nodes), first_step=0)

    def step(self, generation: int, step: int, loss: float | None) -> "Journal":
        """Record a step."""
        return self.append("step", generation=generation, step=step, loss=loss)

    def fault(self, generation: int, diagnosis: Diagnosis, decision: Decision | None = None) -> "Journal":
        """Record a fault, and what was decided."""
        self.append("fault detected", **fault_values(diagnosis, generation))
        if decision is not None:
            self.append("decision", **decision_values(decision, generation))
        return self


def node(name: str, state: Any = "running", age_s: float = 0.1) -> NodeView:
    """Return a node that reports."""
    return NodeView(node=name, heartbeat=Heartbeat(node=name, generation=1, number=1, state=state), age_s=age_s)


TWO = (node("a"), node("b"))
WITH_SPARE = (*TWO, node("c", "ready"))
RESTART = Decision(action="restart", reason="")


def test_first_fault_restarts_in_place() -> None:
    """A node's first fault evicts nothing, and waits for nothing."""
    decision = decide(KILLED, Journal().start(1).events, WITH_SPARE, SETTINGS)
    assert (decision.action, decision.evicted, decision.wait_s) == ("restart", (), 0.0)
    assert decision.reason == (
        "rank killed (rank 3) at step 7; restart number 1 since the last progress, with a limit of 10"
    )


def test_third_fault_of_a_node_replaces_it() -> None:
    """Three faults of one node within the window, and a spare is there."""
    journal = Journal().start(1).fault(1, KILLED, RESTART).start(2).fault(2, KILLED, RESTART).start(3)
    decision = decide(KILLED, journal.events, WITH_SPARE, SETTINGS)
    assert (decision.action, decision.evicted) == ("replace", ("b",))
    assert "node b has 3 faults within 3600 s; spare c takes its place" in decision.reason


def test_faults_outside_the_window_do_not_count() -> None:
    """With a window of 1 s faults of 3 s and more ago are forgotten."""
    journal = Journal().start(1).fault(1, KILLED, RESTART).start(2).fault(2, KILLED, RESTART).start(3).start(4)
    assert decide(KILLED, journal.events, WITH_SPARE, RuleSettings(window_s=1.0)).action == "restart"


def test_a_device_replaces_at_once() -> None:
    """A line of the log that names a device does not wait for a third fault."""
    decision = decide(replace(KILLED, is_hardware=True), Journal().start(1).events, WITH_SPARE, SETTINGS)
    assert (decision.action, decision.evicted) == ("replace", ("b",))


def test_a_cut_link_loses_an_end_at_once_if_there_is_a_spare() -> None:
    """Without one both ends start again: the link may be back."""
    cut = replace(KILLED, cause="link cut", entity="link a-b", ranks=(), nodes=("a", "b"), error="no transfer")
    events = Journal().start(1).events
    replaced = decide(cut, events, WITH_SPARE, SETTINGS)
    assert (replaced.action, replaced.evicted) == ("replace", ("a",))
    assert decide(cut, events, TWO, SETTINGS).action == "restart"
    within = replace(cut, entity="node a", nodes=("a",))
    assert decide(within, events, WITH_SPARE, SETTINGS).action == "restart"


def test_a_node_of_the_last_generation_is_no_spare() -> None:
    """All nodes are ready once their ranks are down."""
    lost = replace(KILLED, cause="node lost", entity="node b", is_hardware=True)
    ready = (node("a", "ready"), node("b", "ready"))
    assert decide(lost, Journal().start(1).events, ready, SETTINGS).action == "restart"


def test_without_a_spare_the_node_must_pass_its_check() -> None:
    """It starts again, and the job stops when it was refused."""
    lost = replace(KILLED, cause="node lost", entity="node b", is_hardware=True)
    journal = Journal().start(1)
    assert decide(lost, journal.events, TWO, SETTINGS).action == "restart"
    journal.append("node refused", node="b", check="memory")
    stopped = decide(lost, journal.events, TWO, SETTINGS)
    assert stopped.action == "stop"
    assert "did not pass its self-check, and there is no spare" in stopped.reason


def test_old_or_ended_spares_are_none() -> None:
    """A spare that does not report takes nobody's place."""
    lost = replace(KILLED, cause="node lost", entity="node b", is_hardware=True)
    assert decide(lost, Journal().start(1).events, (*TWO, node("c", "ready", 60.0)), SETTINGS).action == "restart"


def test_same_error_at_the_same_step_on_another_node_is_code_or_data() -> None:
    """The second time it is tried elsewhere; the same there ends the job. Addresses in the text do not matter."""
    journal = Journal().start(1).fault(1, FAILED, RESTART).start(2)
    again = replace(FAILED, error="ValueError: shapes (3,) at 0x7f99")
    second = decide(again, journal.events, WITH_SPARE, SETTINGS)
    assert (second.action, second.avoided) == ("replay elsewhere", ("b",))
    journal.fault(2, again, second).start(3, ("a", "c"))
    third = decide(replace(FAILED, nodes=("c",)), journal.events, TWO, SETTINGS)
    assert third.action == "stop"
    assert third.reason.startswith("code or data: 'ValueError: shapes (#,) at #' at step 7 on node c")


def test_same_error_without_another_node_stops_at_its_limit() -> None:
    """Three times at the same step."""
    journal = Journal().start(1).fault(1, FAILED, RESTART).start(2).fault(2, FAILED, RESTART).start(3)
    decision = decide(FAILED, journal.events, TWO, SETTINGS)
    assert decision.action == "stop"
    assert "for the 3rd time, with no other node to try" in decision.reason


@pytest.mark.parametrize("other", [replace(FAILED, step=8), replace(FAILED, error="KeyError: x"), KILLED])
def test_other_faults_are_no_crash_loop(other: Diagnosis) -> None:
    """Another step, another error, or a signal from outside."""
    journal = Journal().start(1).fault(1, other, RESTART).start(2)
    assert decide(other if other is KILLED else FAILED, journal.events, TWO, SETTINGS).action == "restart"


def test_restarts_without_progress_end() -> None:
    """Ten restarts after the last new checkpoint are the limit; a new one forgets them. Waits double up to a limit."""
    journal = Journal().append("saved", generation=1, step=4)
    waits_s = []
    for generation in range(1, 11):
        journal.start(generation)
        decision = decide(replace(KILLED, nodes=(f"n{generation}",)), journal.events, TWO, SETTINGS)
        waits_s.append(decision.wait_s)
        journal.fault(generation, replace(KILLED, nodes=(f"n{generation}",)), decision)
    assert waits_s == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    stopped = decide(replace(KILLED, nodes=("x",)), journal.events, TWO, SETTINGS)
    assert stopped.action == "stop"
    assert "after 10 restarts without progress" in stopped.reason
    journal.append("saved", generation=10, step=5)
    assert decide(replace(KILLED, nodes=("x",)), journal.events, TWO, SETTINGS).action == "restart"


def test_what_does_not_end_a_generation_goes_on() -> None:
    """A slow rank or a full storage restarts nothing."""
    for cause in ("rank slow", "storage full", "storage slow", "loss spike"):
        slow = replace(KILLED, cause=cause, is_fatal=False)
        assert decide(slow, Journal().start(1).events, WITH_SPARE, SETTINGS).action == "go on"


def test_damaged_data_stop_and_a_damaged_checkpoint_is_left() -> None:
    """The data are the same everywhere; of checkpoints there is one before."""
    data = replace(KILLED, cause="data damaged", entity="data /t.bin")
    assert decide(data, Journal().start(1).events, WITH_SPARE, SETTINGS).action == "stop"
    checkpoint = replace(KILLED, cause="checkpoint damaged", entity="checkpoint step 10", step=10)
    decision = decide(checkpoint, Journal().start(1).events, WITH_SPARE, SETTINGS)
    assert (decision.action, decision.before_step) == ("restart", 10)


def replayed(loss: float, nodes: Sequence[str]) -> Journal:
    """Return a journal of a loss that was no number, and of its replay up to the step before."""
    journal = Journal().start(1).step(1, 5, 2.5).step(1, 6, 2.25).step(1, 7, None)
    journal.fault(1, NAN, Decision(action="replay elsewhere", reason="", avoided=("a", "b"), before_step=7))
    return journal.start(2, nodes).step(2, 6, loss)


def test_not_a_number_is_replayed_elsewhere() -> None:
    """From a checkpoint before the step, without the nodes if there are others."""
    decision = decide(NAN, Journal().start(1).events, WITH_SPARE, SETTINGS)
    assert (decision.action, decision.avoided, decision.before_step) == ("replay elsewhere", ("a", "b"), 7)


def test_not_a_number_again_bit_by_bit_is_code_or_data() -> None:
    """The same step, after the same losses."""
    journal = replayed(2.25, ("c", "d")).step(2, 7, None)
    decision = decide(NAN, journal.events, TWO, SETTINGS)
    assert decision.action == "stop"
    assert decision.reason.startswith("code or data: the loss of step 7 is no number in generations 1 and 2, on other")


def test_other_losses_before_it_suspect_the_first_nodes() -> None:
    """One bit is enough; the node that took part twice is not suspected."""
    journal = replayed(math.nextafter(2.25, 3), ("b", "c")).step(2, 7, None)
    decision = decide(NAN, journal.events, TWO, SETTINGS)
    assert (decision.action, decision.evicted) == ("replace", ("a",))
    assert "the losses of steps 6 differ" in decision.reason


def test_a_passed_replay_evicts_the_first_nodes_once() -> None:
    """The step has a finite loss on other nodes."""
    journal = replayed(2.25, ("c", "d"))
    assert conclude_replay(journal.events) is None
    journal.step(2, 7, 2.125)
    decision = conclude_replay(journal.events)
    assert decision is not None
    assert (decision.action, decision.evicted) == ("go on", ("a", "b"))
    journal.append("decision", **decision_values(decision, 2))
    assert conclude_replay(journal.events) is None


def test_a_passed_replay_on_the_same_nodes_evicts_nobody() -> None:
    """Without other nodes there is nobody to suspect."""
    assert conclude_replay(replayed(2.25, ("a", "b")).step(2, 7, 2.125).events) is None


def test_values_are_those_of_the_events() -> None:
    """Names as `events.py` lists them."""
    assert tuple(fault_values(KILLED, 1)) == KINDS["fault detected"]
    assert tuple(decision_values(RESTART, 1)) == KINDS["decision"]


CAUSES = st.sampled_from(
    [
        "rank killed",
        "rank failed",
        "rank hung",
        "deadlock",
        "not a number",
        "executor lost",
        "node lost",
        "link cut",
        "loader failed",
        "store lost",
        "storage full",
        "checkpoint damaged",
    ]
)
DIAGNOSES = st.builds(
    lambda cause, node, step, is_hardware: replace(
        FAILED, cause=cause, nodes=(node,), entity=f"node {node}", step=step, is_hardware=is_hardware
    ),
    CAUSES,
    st.sampled_from("ab"),
    st.integers(-1, 9),
    st.booleans(),
)


@given(st.lists(DIAGNOSES, min_size=1, max_size=40))
def test_every_job_without_progress_stops(diagnoses: list[Diagnosis]) -> None:
    """A job that saves nothing new is stopped within its limit, and no wait is longer than its own."""
    journal = Journal().append("saved", generation=0, step=0)
    for generation, diagnosis in enumerate(diagnoses, 1):
        journal.start(generation)
        journal.append("fault detected", **fault_values(diagnosis, generation))
        decision = decide(diagnosis, journal.events, TWO, SETTINGS)
        assert decision.wait_s <= SETTINGS.backoff_limit_s
        assert decision.reason
        if decision.action == "stop":
            return
        journal.append("decision", **decision_values(decision, generation))
    assert len(diagnoses) <= SETTINGS.restart_limit


@given(DIAGNOSES)
def test_a_recorded_diagnosis_counts_once(diagnosis: Diagnosis) -> None:
    """The decision is the same whether the fault is in the journal by then or not."""
    journal = Journal().start(1).fault(1, FAILED, RESTART).start(2)
    before = decide(diagnosis, journal.events, WITH_SPARE, SETTINGS)
    journal.fault(2, diagnosis)
    assert decide(diagnosis, journal.events, WITH_SPARE, SETTINGS) == before
