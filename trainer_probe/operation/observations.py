"""Observations of a running job: what an executor reports of its node, and what the driver knows of all at one moment.

Times are of the monotonic clock of the process that reports them; ages are differences on one clock, so that a clock
that jumps changes nothing.

Requests are counted by group, from 0: a member has issued request number i once it has issued more than i. Messages
from one rank to another match in order, but not with the group's other requests, so that each pair counts as a group of
its own, with a negative number (`message_group`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Section = Literal["start", "load", "first step", "step", "save", "end", "done", "failed"]
NodeState = Literal["joining", "ready", "running", "ending"]


@dataclass(frozen=True, kw_only=True)
class RankStatus:
    """One rank of the current generation."""

    rank: int
    pid: int
    section: Section
    step: int  # that runs or runs next; -1 before the first
    num_changes: int  # of the page: two statuses with the same number are of a rank that has done nothing between
    quiet_s: float  # since the executor last saw the page change
    section_s: float  # since the executor saw this section begin
    process_state: str  # letter of /proc/PID/stat; "" where the process is gone
    cpu_s: float  # processor time of the process so far
    issued: Mapping[int, int] = field(default_factory=dict)  # requests by group, as in the ledger's groups
    waits_for: tuple[int, int] | None = None  # group, and number of the request in it, that the rank waits for
    tag: str = ""  # of that request; without one, what else it waits for: "loader", "store", or ""
    sent_bytes: int = 0  # of all requests so far
    exit_code: int | None = None  # negative for a signal
    error: str = ""  # last error of the rank, "ClassName: text" in one line; secrets redacted
    idle_s: float | None = None  # since the executor last saw its processor time grow; None where it does not look
    state_s: float | None = None  # since it first saw this process state, without a switch between; None as above


@dataclass(frozen=True, kw_only=True)
class ServiceStatus:
    """A process of a node that its ranks rely on."""

    name: str  # "loader", "store"
    pid: int
    process_state: str  # letter of /proc/PID/stat; "" where the process is gone
    state_s: float = 0.0  # since the executor first saw this state, without another between
    exit_code: int | None = None  # None where it is not known, or the process runs


@dataclass(frozen=True, kw_only=True)
class StorageStatus:
    """The state of a place for checkpoints, as a node sees it."""

    url: str
    free_bytes: int | None = None  # None where the place does not tell
    failure: str = ""  # of the last save, "" after one that succeeded
    write_s: float | None = None  # of the last save


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """One node at one moment."""

    node: str
    generation: int
    number: int  # counts an executor's heartbeats
    state: NodeState
    ranks: tuple[RankStatus, ...] = ()
    nic_bytes: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # received and sent, by interface
    log_lines: tuple[str, ...] = ()  # new ones that match a keyword; bounded, secrets redacted
    num_dropped_lines: int = 0
    storages: tuple[StorageStatus, ...] = ()
    unreachable: tuple[str, ...] = ()  # nodes whose address did not answer this one
    services: tuple[ServiceStatus, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """What the driver knows of one node."""

    node: str
    heartbeat: Heartbeat | None  # the last
    age_s: float  # of that, or since the node was asked to start
    has_ended: bool = False  # the backend says that its executor is gone
    traffic_bps: tuple[float, ...] = ()  # over all its interfaces, second by second, the newest last


@dataclass(frozen=True, kw_only=True)
class LateSteps:
    """The rank that others waited for in most of the last steps, with how many of them and of those before."""

    rank: int = -1  # -1 where there is none, or too few steps
    num_late: int = 0
    num_steps: int = 0
    num_late_before: int = 0
    num_steps_before: int = 0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All nodes of a generation at one moment."""

    generation: int
    nodes: tuple[NodeView, ...]
    node_of_rank: Mapping[int, str]
    groups: Mapping[int, tuple[int, ...]]  # ranks by group, as in the ledger
    step_s: tuple[float, ...] = ()  # durations of this job's last steps, the first of a generation left out
    save_s: tuple[float, ...] = ()  # durations of saves, the blocking part
    start_s: tuple[float, ...] = ()  # from the start of a generation to its first step
    losses: tuple[tuple[int, float], ...] = ()  # last steps and their losses
    generation_s: float | None = None  # since the ranks were asked to start; None where it is not known
    late_steps: LateSteps = LateSteps()


def message_group(sender: int, receiver: int, num_ranks: int) -> int:
    """Return the number under which messages from one rank to another are counted; a group's number is never so."""
    return -(1 + sender * num_ranks + receiver)


def message_ranks(group: int, num_ranks: int) -> tuple[int, int]:
    """Return the sender and the receiver of a number that `message_group` returned."""
    sender, receiver = divmod(-1 - group, num_ranks)
    return sender, receiver
