"""A small model of a job: ranks that compute and wait for one another, executors that report them, links between nodes.

Eight ranks, tp 2 pp 2 dp 2, on two or four nodes. A step is a list of work and requests; work takes a noisy time and
comes along in ticks. Executors look at their ranks' pages in ticks too and report with a random delay. A rank whose
peer died fails a few milliseconds later with a connection's error, and so do those that wait for it.

Left out: transfers that take long; asynchronous requests; checkpoints that are written beside a step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from fabrictune.trainer_probe.operation.observations import (
    Heartbeat,
    NodeView,
    RankStatus,
    Section,
    ServiceStatus,
    Snapshot,
    message_group,
    message_ranks,
)

TICK_S = 0.05
NUM_RANKS = 8
# rank = tp + 2 dp + 4 pp
GROUPS = {
    **{number: (2 * number, 2 * number + 1) for number in range(4)},  # tp
    **{4 + number: (first, first + 2) for number, first in enumerate((0, 1, 4, 5))},  # dp
    **{8 + number: (number, number + 4) for number in range(4)},  # pp
}
CLOSED = "RuntimeError: [../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:5121"
LOADER_GONE = "LoaderError: loader x: has ended before its workers"


@dataclass(kw_only=True)
class Rank:
    """A rank's process and page."""

    rank: int
    node: str
    section: Section = "first step"
    step: int = 0
    place: int = 0  # in the program
    work_s: float = 0.0  # left of the current work
    waits_for: tuple[int, int] | None = None
    issued: dict[int, int] = field(default_factory=dict)
    num_changes: int = 0
    cpu_s: float = 0.0
    exit_code: int | None = None
    error: str = ""
    pace: float = 1.0  # of its work: 0.5 takes twice as long
    is_stopped: bool = False
    runs: Callable[[float], bool] = lambda _: True  # of a duty cycle, by time
    is_hung: bool = False  # does nothing, for ever
    is_looping: bool = False  # works for ever
    sleeps_s: float = 0.0  # at each step's begin, without the processor

    @property
    def is_alive(self) -> bool:
        """Whether the process is there."""
        return self.exit_code is None


@dataclass(kw_only=True)
class Watch:
    """What an executor remembers of a rank."""

    num_changes: int = -1
    changed_s: float = 0.0
    cpu_s: float = -1.0
    grew_s: float = 0.0
    state: str = "S"
    state_since_s: float = 0.0


@dataclass(kw_only=True)
class Node:
    """An executor and what the driver last heard of it."""

    name: str
    is_alive: bool = True
    has_ended: bool = False  # known to the backend
    is_stopped: bool = False
    is_reachable: bool = True
    next_beat_s: float = 0.0
    late_until_s: float = 0.0  # heartbeats are held back until then
    loader_state: str = "S"
    loader_since_s: float = 0.0
    watches: dict[int, Watch] = field(default_factory=dict)
    under_way: list[tuple[float, float, Heartbeat]] = field(default_factory=list)  # arrives, sent
    heard: Heartbeat | None = None
    heard_s: float = 0.0


class Job:
    """The model; `tick` moves it on, `snapshot` is what a driver would see."""

    def __init__(self, seed: int, *, num_nodes: int, step_s: float, beat_s: float = 0.25) -> None:
        self.random = Random(seed)
        self.now_s = 0.0
        self.step_s = step_s
        self.beat_s = beat_s
        names = "abcd"[:num_nodes]
        self.ranks = [Rank(rank=rank, node=names[rank * num_nodes // NUM_RANKS]) for rank in range(NUM_RANKS)]
        self.nodes = {name: Node(name=name) for name in names}
        self.cut: set[frozenset[str]] = set()
        self.does_cut_break = False  # connections over a cut link fail, instead of standing still
        self.cut_s = 0.0
        self.steps_s: list[float] = []
        self._step_began_s = 0.0
        self._errors: dict[int, tuple[float, str]] = {}  # rank: when it fails, and with what
        self._programs = [self._program(rank) for rank in range(NUM_RANKS)]
        for rank in self.ranks:
            rank.work_s = self._work_s(0.5) + 1.0  # the first step compiles

    @property
    def step(self) -> int:
        """The lowest step of all ranks."""
        return min(rank.step for rank in self.ranks)

    def tick(self) -> None:
        """Move on by TICK_S."""
        self.now_s += TICK_S
        for rank in self.ranks:
            self._run(rank)
        self._complete()
        self._fail()
        if self.step > len(self.steps_s):
            self.steps_s.append(self.now_s - self._step_began_s)
            self._step_began_s = self.now_s
        for node in self.nodes.values():
            self._report(node)

    def snapshot(self) -> Snapshot:
        """Return what the driver knows now."""
        return Snapshot(
            generation=1,
            nodes=tuple(
                NodeView(
                    node=node.name, heartbeat=node.heard, age_s=self.now_s - node.heard_s, has_ended=node.has_ended
                )
                for node in self.nodes.values()
            ),
            node_of_rank={rank.rank: rank.node for rank in self.ranks},
            groups=GROUPS,
            step_s=tuple(self.steps_s[1:][-32:]),
            generation_s=self.now_s,
        )

    def kill(self, rank: Rank, exit_code: int = -9, error: str = "") -> None:
        """End a rank's process."""
        rank.exit_code, rank.error = exit_code, error
        if exit_code >= 0:
            rank.section = "failed"
            rank.num_changes += 1

    def fail_soon(self, rank: Rank, error: str, delay_s: float) -> None:
        """Let a rank fail a little later, if it does not before."""
        self._errors.setdefault(rank.rank, (self.now_s + delay_s, error))

    def _program(self, rank: int) -> list[tuple[str, float | int]]:
        tp, dp, first_of_pp = rank // 2, 4 + 2 * (rank // 4) + rank % 2, rank % 4
        activation = message_group(first_of_pp, first_of_pp + 4, NUM_RANKS)
        gradient = message_group(first_of_pp + 4, first_of_pp, NUM_RANKS)
        work: list[tuple[str, float | int]] = [("work", 0.12), ("request", tp), ("work", 0.12)]
        if rank < 4:
            micro_batch = [*work, ("request", activation), ("request", gradient), *work]
        else:
            micro_batch = [("request", activation), *work, *work, ("request", gradient)]
        return [("loader", 0), *micro_batch, *micro_batch, ("request", dp), ("work", 0.04), ("request", dp)]

    def _work_s(self, fraction: float) -> float:
        return self.step_s * fraction * 0.4 * self.random.lognormvariate(0.0, 0.15)

    def _run(self, rank: Rank) -> None:
        """Let a rank work for a tick, and come to its next request."""
        if not rank.is_alive or rank.is_stopped or rank.waits_for is not None or rank.is_hung:
            return
        if rank.is_looping:
            rank.cpu_s += TICK_S
            return
        if rank.sleeps_s > 0 and rank.place == 0:
            rank.sleeps_s -= TICK_S
            return
        left_s = TICK_S * rank.pace if rank.runs(self.now_s) else 0.0
        rank.cpu_s += left_s
        while left_s > 0:
            used_s = min(left_s, rank.work_s)
            rank.work_s -= used_s
            left_s -= used_s
            if rank.work_s > 1e-9:
                return
            if not self._advance(rank):
                return

    def _advance(self, rank: Rank) -> bool:
        """Go to the next place of the program; returns whether there is work."""
        program = self._programs[rank.rank]
        if rank.place == len(program):
            rank.place, rank.step, rank.section = 0, rank.step + 1, "step"
            rank.num_changes += 1
            return True
        kind, value = program[rank.place]
        if kind == "loader" and self.nodes[rank.node].loader_state != "S":
            if self.nodes[rank.node].loader_state == "":
                self.fail_soon(rank, LOADER_GONE, 0.01)
            return False
        rank.place += 1
        if kind == "request":
            number = rank.issued.get(int(value), 0)
            rank.issued[int(value)] = number + 1
            rank.waits_for = (int(value), number)
            rank.num_changes += 1
            return False
        if kind == "work":
            rank.work_s = self._work_s(value)
        return True

    def _members(self, group: int) -> tuple[int, ...]:
        return GROUPS[group] if group >= 0 else message_ranks(group, NUM_RANKS)

    def _complete(self) -> None:
        """End the waits for requests that all members have issued, if their links carry them."""
        for rank in self.ranks:
            if rank.waits_for is None or not rank.is_alive:
                continue
            group, number = rank.waits_for
            members = [self.ranks[member] for member in self._members(group)]
            if any(not member.is_alive for member in members):
                self.fail_soon(rank, CLOSED, self.random.uniform(0.001, 0.1))
            elif self._is_cut(members):
                if self.does_cut_break:
                    self.fail_soon(rank, CLOSED, self.random.uniform(0.1, 3.0))
            elif not rank.is_stopped and all(
                member.issued.get(group, 0) > number and not member.is_stopped for member in members
            ):
                rank.waits_for = None
                rank.num_changes += 1

    def _is_cut(self, members: list[Rank]) -> bool:
        names = sorted({member.node for member in members})
        return any(frozenset((one, other)) in self.cut for one in names for other in names if one < other)

    def _fail(self) -> None:
        for number, (at_s, error) in self._errors.items():
            rank = self.ranks[number]
            if rank.is_alive and not rank.is_stopped and self.now_s >= at_s:
                self.kill(rank, 1, error)

    def _report(self, node: Node) -> None:
        """Let an executor look at its ranks, send what it saw, and the driver take what has arrived."""
        if node.is_alive and not node.is_stopped:
            statuses = tuple(self._look(rank, node) for rank in self.ranks if rank.node == node.name)
            if self.now_s >= node.next_beat_s and self.now_s >= node.late_until_s:
                node.next_beat_s = self.now_s + self.beat_s * self.random.uniform(0.8, 1.4)
                arrives_s = self.now_s + self.random.expovariate(1 / 0.02)
                if node.is_reachable:
                    node.under_way.append((arrives_s, self.now_s, self._heartbeat(node, statuses)))
        for arrives_s, sent_s, heartbeat in list(node.under_way):
            if arrives_s <= self.now_s:
                node.under_way.remove((arrives_s, sent_s, heartbeat))
                if sent_s >= node.heard_s:
                    node.heard, node.heard_s = heartbeat, sent_s

    def _look(self, rank: Rank, node: Node) -> RankStatus:
        watch = node.watches.setdefault(rank.rank, Watch(changed_s=self.now_s, grew_s=self.now_s))
        if rank.num_changes != watch.num_changes:
            watch.num_changes, watch.changed_s = rank.num_changes, self.now_s
        if int(rank.cpu_s * 100) != int(watch.cpu_s * 100):  # clock ticks of 10 ms
            watch.cpu_s, watch.grew_s = rank.cpu_s, self.now_s
        if self._state(rank) != watch.state:
            watch.state, watch.state_since_s = self._state(rank), self.now_s
        waits_on_loader = rank.is_alive and rank.place == 0 and node.loader_state != "S"
        return RankStatus(
            rank=rank.rank,
            pid=1000 + rank.rank,
            section=rank.section,
            step=rank.step,
            num_changes=rank.num_changes,
            quiet_s=self.now_s - watch.changed_s,
            section_s=self.now_s - watch.changed_s,
            process_state=self._state(rank),
            cpu_s=rank.cpu_s,
            issued=dict(rank.issued),
            waits_for=rank.waits_for,
            tag="loader" if waits_on_loader else "",
            exit_code=rank.exit_code,
            error=rank.error,
            idle_s=self.now_s - watch.grew_s,
            state_s=self.now_s - watch.state_since_s,
        )

    def _state(self, rank: Rank) -> str:
        if not rank.is_alive:
            return ""
        if rank.is_stopped or not rank.runs(self.now_s):
            return "T"
        return "S" if rank.waits_for is not None or rank.is_hung or rank.sleeps_s > 0 else "R"

    def _heartbeat(self, node: Node, statuses: tuple[RankStatus, ...]) -> Heartbeat:
        return Heartbeat(
            node=node.name,
            generation=1,
            number=int(self.now_s / TICK_S),
            state="running",
            ranks=statuses,
            unreachable=tuple(self._unreachable(node)),
            services=(
                ServiceStatus(
                    name="loader",
                    pid=900,
                    process_state=node.loader_state,
                    state_s=self.now_s - node.loader_since_s,
                    exit_code=-9 if node.loader_state == "" else None,
                ),
            ),
        )

    def _unreachable(self, node: Node) -> Iterator[str]:
        for other in self.nodes.values():
            is_cut = frozenset((node.name, other.name)) in self.cut and self.now_s > self.cut_s + 1.0
            if other is not node and (is_cut or not other.is_reachable):
                yield other.name
