"""The control of a job: what the driver does about what it is told. It has no clock and no I/O.

A generation goes from gathering nodes over its store and its ranks to its end, and the end has two phases: executors
confirm that no process is left, or the backend has ended them; then the next one starts. Everything that a second
driver has to know is recorded before it is done.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabrictune.trainer_probe.operation.changes import changed, decide_rollback
from fabrictune.trainer_probe.operation.commands import Command, EndNode, Finish, Record, Send
from fabrictune.trainer_probe.operation.continuation import ROLL_BACK, Continuation
from fabrictune.trainer_probe.operation.copy_plan import peer_values, plan_copies
from fabrictune.trainer_probe.operation.decisions import Decision, Diagnosis
from fabrictune.trainer_probe.operation.driver_state import Generation, JobSettings, Phase, Purpose
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.node_book import NodeBook
from fabrictune.trainer_probe.operation.placement import choose_nodes, place_ranks
from fabrictune.trainer_probe.operation.rules import (
    RuleSettings,
    decide,
    decision_values,
    diagnose,
    fault_values,
)
from fabrictune.trainer_probe.operation.snapshots import RecentFigures

FROM_RANKS = frozenset({"step", "training", "saved", "save failed", "copies late"})  # kinds that an executor may send
POLL_CHANGE = 0.25  # fraction by which the time between two statuses changes before nodes are told
EXECUTOR_CAUSES = ("executor lost", "node lost")


class JobControl:
    """The state of a job and its rules. Each method returns commands, in the order in which they are to be done."""

    def __init__(
        self,
        settings: JobSettings,
        rules: RuleSettings,
        before: Continuation,
        living: Collection[str],
        now_s: float,
    ) -> None:
        self._settings, self._rules = settings, rules
        self.phase: Phase = "gathering"
        self.book = NodeBook(settings, before, living, now_s)
        self.nodes = self.book.by_name
        self.generation = Generation(number=before.generation, nodes=before.nodes, task=before.task)
        self.events: list[Event] = []
        self._figures = RecentFigures()
        self._avoided: frozenset[str] = frozenset(before.avoided)
        self._before_step = before.before_step
        self._next_task = before.next_task  # of a change
        self._wait_until_s = now_s + before.wait_s
        self._is_rollback = before.next_task is not None and before.next_task == before.before_change
        self._is_stopping = False
        self._is_deciding = before.is_deciding
        self._last_result: Mapping[str, Any] | None = None
        if before.is_open:
            self.phase = "ending" if before.diagnosis is not None else "rejoining"
            self.generation.began_s = self.generation.ending_s = now_s
            self.generation.ranks_of = self._place(before.nodes)
        else:
            self.generation.sessions = dict.fromkeys(before.nodes, "")  # none of an executor that lives has part in it
        self.generation.diagnosis, self.generation.before_change = before.diagnosis, before.before_change

    # What happens

    def on_hello(self, message: Mapping[str, Any], now_s: float) -> list[Command]:
        """Take the first message of a connection."""
        commands = self.book.greet(message, now_s, is_over=self.phase == "over")
        self.generation.poll_s = 0.0  # tell all again
        if self.phase == "ending" and message["node"] in self.generation.nodes:
            commands.append(self._end_message(str(message["node"])))
        return commands

    def on_status(self, name: str, message: Mapping[str, Any], now_s: float) -> list[Command]:
        """Take a node's status."""
        self.book.note_status(name, message, now_s)
        return []

    def on_event(self, name: str, message: Mapping[str, Any]) -> list[Command]:
        """Take an event of a node's ranks."""
        kind, values, node = message["event"], message["values"], self.nodes[name]
        if kind not in FROM_RANKS:
            return []
        if kind == "saved" and values["generation"] == self.generation.number:
            self.generation.before_change = None
        if kind == "step" and values["generation"] == self.generation.number:
            self.generation.num_steps += 1
        return [
            Record(
                kind=kind, values=values, origin=(node.session, int(message["number"])), clock_s=message.get("clock_s")
            )
        ]

    def on_node_ended(self, name: str, exit_code: int) -> list[Command]:
        """Take from the backend that a node's executor and all its processes are gone."""
        return self.book.note_end(name, exit_code)

    def on_recorded(self, event: Event, since_start_s: float | None = None) -> None:
        """Take an event that is in the journal."""
        self.events.append(event)
        self._figures.take(event.kind, event.values, since_start_s=since_start_s)

    def on_stop(self) -> list[Command]:
        """Let the job end after the step that runs, with a checkpoint."""
        self._is_stopping = True
        return self._ask_ranks_to_stop() if self.phase == "running" else []

    def on_change(self, change: Mapping[str, Any]) -> list[Command]:
        """Let the job go on with a changed task, from a checkpoint after the step that runs."""
        self._next_task = changed(self._next_task or self.generation.task or self._settings.task, change)
        asked = Record(kind="change asked", values={"task": self._next_task.to_values()})
        return [asked, *(self._ask_ranks_to_stop() if self.phase == "running" else [])]

    def on_tick(self, now_s: float) -> list[Command]:
        """Look at everything; called after messages, and now and then."""
        if self.phase == "over":
            return []
        commands = self.book.keep(now_s)
        match self.phase:
            case "gathering":
                commands += self._gather(now_s)
            case "storing":
                commands += self._start_ranks(now_s)
            case "rejoining":
                commands += self._rejoin(now_s)
            case "running":
                commands += self._watch(now_s)
            case "ending":
                commands += self._await_end(now_s)
        return commands

    # A generation

    def _gather(self, now_s: float) -> list[Command]:
        """Start the next generation once there are nodes for it."""
        if self._is_stopping:
            return self._finish("interrupted", "asked to stop")
        if cause := self.book.hopeless():
            return self._finish("stopped", cause)
        if now_s < self._wait_until_s:
            return []
        chosen = choose_nodes(
            self.book.ready(self.generation), self.generation.nodes, self._avoided, self._settings.num_nodes_needed
        )
        if chosen is None:
            return []
        earlier = self.generation
        task = replace(
            self._next_task or earlier.task or self._settings.task,
            generation=earlier.number + 1,
            before_step=self._before_step,
            store=self._settings.store,
        )
        is_changed, is_rollback = self._next_task is not None, self._is_rollback
        before_change = earlier.task if is_changed else earlier.before_change
        self._next_task, self._before_step, self._is_rollback = None, None, False
        self.generation = Generation(
            before_change=None if is_rollback else before_change,
            number=task.generation,
            nodes=chosen,
            ranks_of=self._place(chosen),
            sessions={name: self.nodes[name].session for name in chosen},
            began_s=now_s,
            task=task,
        )
        self.phase = "storing"
        record = Record(
            kind="generation started",
            values={
                "generation": task.generation,
                "nodes": list(chosen),
                "first_step": None,  # the ranks find the newest state, and record it with their first step
                "source": "",
                "code": task.code,
                "peers": peer_values(self.generation, self.nodes, self._settings),
                "task": task.to_values(),
                "before_change": before_change.to_values() if before_change and not is_rollback else None,
            },
        )
        values = {"generation": task.generation, "code": task.code, "is_rollback": is_rollback}
        changes = [Record(kind="code changed", values=values)] if is_changed else []
        serve = {"kind": "serve store", "generation": task.generation}
        return [*changes, record, *([] if task.store else [Send(node=chosen[0], values=serve)])]

    def _start_ranks(self, now_s: float) -> list[Command]:
        """Start the ranks once their store is there."""
        generation = self.generation
        assert generation.task is not None, "of a generation"
        store = self._settings.store or self._store_of_first()
        if not store:
            return self._watch_nodes(now_s)
        generation.task = replace(generation.task, store=store)
        self.phase = "running"
        values = {"kind": "start", "generation": generation.number, "nodes": list(generation.nodes)}
        values |= {
            "job": generation.task.to_values(),
            "addresses": {name: self.nodes[name].address for name in generation.nodes},
        }
        copies = plan_copies(generation, self.nodes, self._settings)
        return [
            Send(node=name, values={**values, "ranks": list(ranks), **copies[name]})
            for name, ranks in generation.ranks_of.items()
        ]

    def _place(self, nodes: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        return place_ranks(nodes, self._settings.num_ranks, self._settings.num_slots)

    def _store_of_first(self) -> str:
        first = self.nodes[self.generation.nodes[0]]
        is_of_now = first.heartbeat is not None and first.heartbeat.generation == self.generation.number
        return first.store if is_of_now else ""

    def _rejoin(self, now_s: float) -> list[Command]:
        """Go on with ranks that run when all their executors are back, or end them where one is not."""
        nodes = [self.nodes[name] for name in self.generation.nodes]
        if any(node.life == "away" or (node.life == "joined" and node.heartbeat is None) for node in nodes):
            return []
        for node in nodes:
            if node.heartbeat is None or node.heartbeat.generation != self.generation.number:
                self.generation.sessions = {node.name: "" for node in nodes}
                return self._watch_nodes(now_s)
        self.generation.sessions = {node.name: node.session for node in nodes}
        self.phase = "running"
        return self._watch(now_s)

    def _watch(self, now_s: float) -> list[Command]:
        """Look for the end of the ranks' work, and for faults."""
        if self._is_done():
            self._last_result = self._result()
            return self._end("update" if self._next_task is not None and self._was_stopped() else "finish", now_s)
        commands: list[Command] = self._tell_poll()
        if lost := self._watch_nodes(now_s):
            return commands + lost
        nodes = [self.nodes[name] for name in self.generation.nodes]
        snapshot = self._figures.snapshot(self.generation, nodes, self._settings.layout, now_s)
        diagnosis = diagnose(snapshot, self._rules)
        return commands if diagnosis is None else commands + self._on_fault(diagnosis, now_s)

    def _watch_nodes(self, now_s: float) -> list[Command]:
        """Look for executors of this generation that are gone, or that others have taken the place of."""
        for name in self.generation.nodes:
            node = self.nodes[name]
            if node.life == "joined" and node.session == self.generation.sessions[name]:
                continue
            diagnosis = Diagnosis(
                cause="executor lost",
                entity=f"node {name}",
                nodes=(name,),
                evidence=(f"{name}: its executor has ended",),
                quiet_s=now_s - node.since_s,
                is_fatal=True,
            )
            return self._on_fault(diagnosis, now_s)
        return []

    def _on_fault(self, diagnosis: Diagnosis, now_s: float) -> list[Command]:
        key = (diagnosis.cause, diagnosis.entity)
        record = Record(kind="fault detected", values=fault_values(diagnosis, self.generation.number))
        if not diagnosis.is_fatal:
            if key in self.generation.named:
                return []
            self.generation.named.add(key)
            return [record]
        self.generation.diagnosis = diagnosis
        commands = [record, *self._end("fault", now_s)]
        for name in diagnosis.nodes if diagnosis.cause in EXECUTOR_CAUSES else ():
            commands += self._ask_backend(name)
        return commands

    def _end(self, purpose: Purpose, now_s: float) -> list[Command]:
        """Begin the end of a generation: no executor is to have a process of it left."""
        self.phase = "ending"
        self.generation.purpose, self.generation.ending_s = purpose, now_s
        return [self._end_message(name) for name in self.generation.nodes]

    def _end_message(self, name: str) -> Command:
        return Send(node=name, values={"kind": "end", "generation": self.generation.number})

    def _await_end(self, now_s: float) -> list[Command]:
        """Go on when no node has a process of the generation left."""
        generation, commands = self.generation, list[Command]()
        is_late = now_s - generation.ending_s > self._settings.limits.end_s
        open_nodes = [name for name in generation.nodes if not self._has_ended(name)]
        for name in open_nodes if is_late else ():
            commands += self._ask_backend(name)
        if open_nodes:
            return commands
        stacks = [line for name in generation.nodes for line in (self.nodes[name].ended or {}).get("stacks", ())]
        commands.append(
            Record(
                kind="ranks down",
                values={
                    "generation": generation.number,
                    "elapsed_s": now_s - generation.ending_s,
                    "stacks": stacks,
                },
            )
        )
        return commands + self._after_end(now_s)

    def _has_ended(self, name: str) -> bool:
        node = self.nodes[name]
        if node.life in ("ended", "evicted"):
            return True
        is_other = node.life == "starting" or node.session != self.generation.sessions.get(name, node.session)
        if is_other or node.life != "joined":
            return is_other
        is_empty = node.heartbeat is not None and not node.heartbeat.ranks and node.heartbeat.state != "ending"
        return node.fence >= self.generation.number and is_empty

    def _ask_backend(self, name: str) -> list[Command]:
        node = self.nodes[name]
        if name in self.generation.asked_backend or node.life in ("ended", "evicted", "starting"):
            return []
        self.generation.asked_backend.add(name)
        node.life = "ending"
        return [EndNode(node=name)]

    def _after_end(self, now_s: float) -> list[Command]:
        generation = self.generation
        match generation.purpose:
            case "finish":
                if self._was_stopped():
                    return self._finish("interrupted", "asked to stop")
                if unsaved := self._figures.unsaved():
                    return self._finish(
                        "stopped", f"{unsaved}; all steps are done, and the last checkpoint is not there"
                    )
                return self._finish("finished", "")
            case "update":
                self.phase = "gathering"
                return []
        assert generation.diagnosis is not None, "of a fault"
        self._is_deciding = True
        return []

    def decide(self, now_s: float) -> list[Command]:
        """Decide about the last fault, once all before is in the journal."""
        if not self._is_deciding or self.phase == "over":
            return []
        self._is_deciding, self.phase = False, "gathering"
        diagnosis = self.generation.diagnosis
        assert diagnosis is not None, "of a fault"
        views = [node.view(now_s) for node in self.nodes.values()]
        decision = decide_rollback(diagnosis, self.generation.before_change) or decide(
            diagnosis, self.events, views, self._rules
        )
        if decision.action == ROLL_BACK:
            self._next_task, self._is_rollback = self.generation.before_change, True
        commands: list[Command] = [Record(kind="decision", values=decision_values(decision, self.generation.number))]
        if decision.action == "stop":
            return commands + self._finish("stopped", f"{diagnosis.cause}: {diagnosis.entity}; {decision.reason}")
        return commands + self._apply(decision, diagnosis, now_s)

    def _apply(self, decision: Decision, diagnosis: Diagnosis, now_s: float) -> list[Command]:
        commands: list[Command] = []
        self._before_step, self._avoided = decision.before_step, frozenset(decision.avoided)
        self._wait_until_s = now_s + decision.wait_s
        for name in decision.evicted:
            commands += self.book.evict(name, diagnosis.cause)
        return commands

    # The end

    def _is_done(self) -> bool:
        """Return whether every rank has ended well, and what it has come to is known."""
        if self._result() is None:
            return False
        if all(self.nodes[name].fence >= self.generation.number for name in self.generation.nodes):
            return True
        statuses = [
            rank
            for name in self.generation.nodes
            if (heartbeat := self.nodes[name].heartbeat) is not None and heartbeat.generation == self.generation.number
            for rank in heartbeat.ranks
        ]
        return len(statuses) == self._settings.num_ranks and all(rank.exit_code == 0 for rank in statuses)

    def _result(self) -> Mapping[str, Any] | None:
        result = self.nodes[self.generation.nodes[0]].result
        return result if result is not None and result["generation"] == self.generation.number else None

    def _was_stopped(self) -> bool:
        return self._last_result is not None and bool(self._last_result["was_stopped"])

    def _finish(self, outcome: str, cause: str) -> list[Command]:
        self.phase = "over"
        step = -1 if self._last_result is None else int(self._last_result["step"])
        return [
            Record(kind="job ended", values={"outcome": outcome, "cause": cause, "step": step}),
            *(Send(node=name, values={"kind": "leave"}) for name in self.nodes),
            Finish(outcome=outcome, cause=cause, step=step),
        ]

    def _ask_ranks_to_stop(self) -> list[Command]:
        stop = {"kind": "stop", "generation": self.generation.number}
        return [Send(node=name, values=stop) for name in self.generation.nodes]

    def _tell_poll(self) -> list[Command]:
        poll_s, told_s = self._figures.poll_s(), self.generation.poll_s
        if abs(poll_s - told_s) <= POLL_CHANGE * told_s:
            return []
        self.generation.poll_s = poll_s
        return [Send(node=name, values={"kind": "poll", "poll_s": poll_s}) for name in self.generation.nodes]
