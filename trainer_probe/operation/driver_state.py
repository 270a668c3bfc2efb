"""What a driver knows of its job: settings, nodes, and the generation of now."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.node_traffic import NodeTraffic
from fabrictune.trainer_probe.operation.observations import Heartbeat, NodeView
from fabrictune.trainer_probe.operation.refusals import Refusals
from fabrictune.trainer_probe.operation.tasks import JobTask

Phase = Literal["gathering", "storing", "rejoining", "running", "ending", "over"]
Purpose = Literal["fault", "finish", "update"]  # for which a generation is ended
Life = Literal["starting", "away", "joined", "ending", "ended", "evicted"]  # away: lives, by the backend, and is silent


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long the driver waits, in seconds."""

    end_s: float = 6.0  # for executors to confirm that a generation has ended; then the backend ends them
    rejoin_s: float = 10.0  # for executors that live, after the driver was started again
    join_s: float = 120.0  # from the start of a node to its first word: torch is imported in it
    max_starts: int = 8  # of a node, one after another, that never joined

    @classmethod
    def for_this_machine(cls) -> "Limits":
        """Return the limits, scaled for a machine with much else to do."""
        own = cls()
        return cls(end_s=own.end_s, rejoin_s=scaled(own.rejoin_s), join_s=scaled(own.join_s))


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings of a job that stay the same."""

    task: JobTask  # of the first generation, without its store
    layout: ParallelLayout
    num_nodes: int
    num_spares: int
    num_slots: int  # ranks of a node at most
    store: str = ""  # address of a store that is served elsewhere; "" for one of the first node
    tor_sets: Mapping[str, str] = field(default_factory=dict)  # by name of a host or node
    last_step: int = 0  # number after the recipe's last
    limits: Limits = field(default_factory=Limits)

    @property
    def num_ranks(self) -> int:
        """Ranks of the job."""
        return self.layout.world_size

    @property
    def num_nodes_needed(self) -> int:
        """Nodes whose slots hold all ranks."""
        return math.ceil(self.num_ranks / self.num_slots)


@dataclass(kw_only=True)
class Node:
    """One node as the driver knows it."""

    name: str
    life: Life = "starting"
    since_s: float = 0.0  # the last word of it, or its start
    session: str = ""  # of its executor
    address: str = ""
    host: str = ""
    copies: tuple[str, int] | None = None  # where it serves its memory
    heartbeat: Heartbeat | None = None
    fence: int = 0
    store: str = ""
    result: Mapping[str, Any] | None = None
    ended: Mapping[str, Any] | None = None
    traffic: NodeTraffic = field(default_factory=NodeTraffic)
    num_starts: int = 0  # since it last joined
    end_refusals: Refusals = field(default_factory=Refusals)

    def view(self, now_s: float) -> NodeView:
        """Return what the rules see of the node."""
        return NodeView(
            node=self.name,
            heartbeat=self.heartbeat,
            age_s=now_s - self.since_s,
            has_ended=self.life in ("ended", "evicted"),
            traffic_bps=self.traffic.rates_bps(),
        )

    def forget_executor(self) -> None:
        """Drop what an executor that is gone has said."""
        self.session, self.heartbeat, self.store, self.result, self.ended, self.fence = "", None, "", None, None, 0
        self.traffic = NodeTraffic()


@dataclass(kw_only=True)
class Generation:
    """The generation of now."""

    number: int = 0
    nodes: tuple[str, ...] = ()
    ranks_of: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    began_s: float = 0.0
    task: JobTask | None = None
    purpose: Purpose = "fault"
    before_change: JobTask | None = None  # to go back to until the changed one has saved a checkpoint
    diagnosis: Diagnosis | None = None
    ending_s: float = 0.0  # since when it is being ended
    asked_backend: set[str] = field(default_factory=set)  # to end nodes that do not answer
    named: set[tuple[str, str]] = field(default_factory=set)  # faults that are not fatal, recorded once
    num_steps: int = 0
    poll_s: float = 0.0  # last sent to the nodes
