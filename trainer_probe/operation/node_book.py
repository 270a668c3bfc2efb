"""The nodes of a job: which there are, which are to be started, and which may have ranks."""

from collections.abc import Collection, Mapping
from typing import Any

from fabrictune.trainer_probe.operation.commands import Command, EndNode, Record, Send, StartNode
from fabrictune.trainer_probe.operation.continuation import Continuation
from fabrictune.trainer_probe.operation.driver_state import Generation, JobSettings, Node
from fabrictune.trainer_probe.operation.heartbeats import heartbeat_of
from fabrictune.trainer_probe.operation.refusals import MAX_REFUSALS, Refusals


class NodeBook:
    """All nodes there ever were. `by_name` has them; methods return commands."""

    def __init__(self, settings: JobSettings, before: Continuation, living: Collection[str], now_s: float) -> None:
        self._settings = settings
        self.evicted = set(before.evicted)
        self._start_refusals = Refusals()  # of any node, since one has joined
        names = {*before.names, *living}
        self._num_names = max((int(name.removeprefix("node")) + 1 for name in names if _is_own(name)), default=0)
        self.by_name = {
            name: Node(name=name, life="away" if name in living else "ended", since_s=now_s) for name in names
        }
        for name in self.evicted & names:
            self.by_name[name].life = "evicted"

    def __getitem__(self, name: str) -> Node:
        return self.by_name[name]

    def greet(self, message: Mapping[str, Any], now_s: float, *, is_over: bool) -> list[Command]:
        """Take the first message of a connection, in which an executor says who it is: it joins, or has to leave."""
        name = str(message["node"])
        node = self.by_name.setdefault(name, Node(name=name, since_s=now_s))
        node.since_s = now_s
        if node.life in ("evicted", "ending") or name in self.evicted or is_over:
            return [Send(node=name, values={"kind": "leave"})]
        if not message["check"].get("is_passed"):
            node.life = "ending"
            return [
                Record(kind="node refused", values={"node": name, "check": message["check"]}),
                Send(node=name, values={"kind": "leave"}),
            ]
        commands: list[Command] = []
        if node.session != message["session"]:
            node.forget_executor()
            node.session, node.num_starts = message["session"], 0
            self._start_refusals = Refusals()
            values = {key: message[key] for key in ("node", "host", "address", "num_slots", "check")}
            commands.append(Record(kind="node joined", values=values))
        node.life, node.fence, node.address = "joined", int(message["fence"]), str(message["address"])
        node.host, (address, port) = str(message["host"]), message["copies"]
        node.copies = str(address), int(port)
        return commands

    def note_status(self, name: str, message: Mapping[str, Any], now_s: float) -> None:
        """Take a node's status."""
        node = self.by_name[name]
        node.since_s = now_s
        node.heartbeat = heartbeat_of(message["heartbeat"])
        node.traffic.take(node.heartbeat.nic_bytes, now_s)
        node.fence, node.store = int(message["fence"]), str(message["store"])
        node.result, node.ended = message["result"], message["ended"]

    def note_end(self, name: str, exit_code: int) -> list[Command]:
        """Take from the backend that a node's executor and all its processes are gone."""
        node = self.by_name.setdefault(name, Node(name=name))
        if node.life in ("ended", "evicted"):
            return []
        node.life = "evicted" if name in self.evicted else "ended"
        node.forget_executor()
        node.end_refusals = Refusals()
        return [Record(kind="node ended", values={"node": name, "exit_code": exit_code})]

    def note_refused_start(self, name: str, cause: str, now_s: float) -> list[Command]:
        """Take that the backend has not started a node; nodes that are refused together count as one attempt."""
        node = self.by_name[name]
        if node.life == "starting":
            node.life, node.num_starts = "ended", node.num_starts - 1
        if now_s >= self._start_refusals.until_s:
            self._start_refusals = self._start_refusals.after(cause, now_s)
        return [_refused("node not started", name, cause, self._start_refusals, now_s)]

    def note_refused_end(self, name: str, cause: str, now_s: float) -> list[Command]:
        """Take that the backend has not ended a node; after many attempts it counts as cut off by its generation."""
        node = self.by_name[name]
        if node.life != "ending":
            return []
        node.end_refusals = node.end_refusals.after(cause, now_s)
        commands: list[Command] = [_refused("node not ended", name, cause, node.end_refusals, now_s)]
        if node.end_refusals.number < MAX_REFUSALS:
            return commands
        node.life = "ended"
        node.forget_executor()
        return [*commands, *self.evict(name, f"cannot be ended: {cause}")]

    def evict(self, name: str, cause: str) -> list[Command]:
        """Let a node take no part any more."""
        self.evicted.add(name)
        commands: list[Command] = [Record(kind="node evicted", values={"node": name, "cause": cause})]
        node = self.by_name[name]
        if node.life == "ended":
            node.life = "evicted"
        elif node.life not in ("ending", "evicted"):
            node.life = "ending"
            commands.append(EndNode(node=name))
        return commands

    def keep(self, now_s: float) -> list[Command]:
        """Start nodes until there are as many as the job needs, with spares."""
        wanted = self._settings.num_nodes + self._settings.num_spares
        commands: list[Command] = []
        for node in self.by_name.values():
            limits = self._settings.limits
            limit_s = {"starting": limits.join_s, "away": limits.rejoin_s}.get(node.life)
            if limit_s is not None and now_s - node.since_s > limit_s:
                node.life = "ending"
                commands.append(EndNode(node=node.name))
            elif node.life == "ending" and node.end_refusals.number and now_s >= node.end_refusals.until_s:
                node.end_refusals = node.end_refusals.asked()
                commands.append(EndNode(node=node.name))
        if now_s < self._start_refusals.until_s:
            return commands
        num_living = sum(node.life in ("starting", "away", "joined") for node in self.by_name.values())
        while num_living < wanted:
            node = self._next_node()
            if node.num_starts >= self._settings.limits.max_starts:
                return commands
            node.life, node.since_s, node.num_starts = "starting", now_s, node.num_starts + 1
            commands.append(StartNode(node=node.name))
            num_living += 1
        return commands

    def _next_node(self) -> Node:
        """Return a node to start: one that has ended, or a new one."""
        for node in sorted(self.by_name.values(), key=lambda node: node.num_starts):
            if node.life == "ended":
                return node
        name = f"node{self._num_names}"
        self._num_names += 1
        return self.by_name.setdefault(name, Node(name=name))

    def hopeless(self) -> str:
        """Return why there will be no nodes for all ranks, "" while there may be."""
        num_joined = sum(node.life == "joined" for node in self.by_name.values())
        if num_joined >= self._settings.num_nodes_needed:
            return ""
        if self._start_refusals.number >= MAX_REFUSALS:
            return (
                f"no node could be started in {MAX_REFUSALS} attempts: {self._start_refusals.cause}; "
                "once that is mended, the same command goes on from the newest checkpoint"
            )
        limit = self._settings.limits.max_starts
        found = (n for n in self.by_name.values() if n.life == "ended" and n.num_starts >= limit)
        return next((f"{node.name} has not joined after {node.num_starts} starts" for node in found), "")

    def ready(self, last: Generation) -> list[str]:
        """Return the nodes that can have ranks of the generation after `last`."""
        return [
            node.name
            for node in self.by_name.values()
            if node.life == "joined"
            and node.heartbeat is not None
            and node.heartbeat.state == "ready"
            and _is_clear_of(last, node)
        ]


def _is_clear_of(last: Generation, node: Node) -> bool:
    """Return whether a node's executor has ended the last generation, or had no part in it."""
    had_part = node.name in last.nodes and last.sessions.get(node.name, node.session) == node.session
    return not had_part or node.fence >= last.number


def _is_own(name: str) -> bool:
    return name.removeprefix("node").isdecimal()


def _refused(kind: str, name: str, cause: str, refusals: Refusals, now_s: float) -> Record:
    wait_s = round(max(0.0, refusals.until_s - now_s), 3)
    return Record(kind=kind, values={"node": name, "cause": cause, "attempt": refusals.number, "wait_s": wait_s})
