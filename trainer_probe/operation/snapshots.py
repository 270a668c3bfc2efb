"""Snapshots for the rules, and the figures of the last steps that they rest on."""

import math
import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.operation.driver_state import Generation, Node
from fabrictune.trainer_probe.operation.observations import NodeView, Snapshot, StorageStatus
from fabrictune.trainer_probe.operation.rules.error_signs import kind_of_error
from fabrictune.trainer_probe.operation.rules.late_steps import LateStepsCounter

NUM_RECENT = 64
MIN_POLL_S, MAX_POLL_S = 0.02, 1.0
POLLS_OF_A_STEP = 8  # statuses that a node sends in a step
FIRST_POLL_S = 0.1


class RecentFigures:
    """Durations and losses of the last steps of a job."""

    def __init__(self) -> None:
        self._step_s = deque[float](maxlen=NUM_RECENT)
        self._save_s = deque[float](maxlen=NUM_RECENT)
        self._start_s = deque[float](maxlen=NUM_RECENT)
        self._losses = deque[tuple[int, float]](maxlen=NUM_RECENT)
        self._late_steps = LateStepsCounter()
        self._seen: int = -1  # generation whose first step was seen
        self._storages: dict[str, StorageStatus] = {}  # by what their last save came to

    def take(self, kind: str, values: Mapping[str, Any], *, since_start_s: float | None = None) -> None:
        """Take an event of the journal."""
        if kind == "step":
            is_first = values["generation"] != self._seen
            self._seen = values["generation"]
            if not is_first:
                self._step_s.append(values["elapsed_ns"] / 1e9)
            loss = values["loss"]
            self._losses.append((values["step"], math.nan if loss is None else loss))
        elif kind == "generation started":
            self._losses.clear()  # a loss that was no number is not this one's
        elif kind == "saved":
            self._save_s.append(values["blocked_ns"] / 1e9)
            self._note_storage(values["tier"], write_s=values["elapsed_s"])
        elif kind == "save failed":
            self._note_storage(values["tier"], failure=values["cause"])
        elif kind == "training" and since_start_s is not None:
            self._start_s.append(since_start_s)

    def unsaved(self) -> str:
        """Return which storages have refused the last save, and why; "" where none has."""
        failing = [storage for storage in self._storages.values() if storage.failure]
        return "; ".join(f"{_cause(storage)}: storage {storage.url}: {storage.failure}" for storage in failing)

    def _note_storage(self, tier: str, *, write_s: float | None = None, failure: str = "") -> None:
        if tier != "memory":
            self._storages[tier] = StorageStatus(url=tier, failure=failure, write_s=write_s)

    def poll_s(self) -> float:
        """Return the time between two statuses of a node."""
        if not self._step_s:
            return FIRST_POLL_S
        return min(MAX_POLL_S, max(MIN_POLL_S, statistics.median(self._step_s) / POLLS_OF_A_STEP))

    def snapshot(self, generation: Generation, nodes: Iterable[Node], layout: ParallelLayout, now_s: float) -> Snapshot:
        """Return all nodes of a generation at this moment."""
        snapshot = Snapshot(
            generation=generation.number,
            nodes=self._with_storages([_of_generation(node.view(now_s), generation.number) for node in nodes]),
            node_of_rank={rank: name for name, ranks in generation.ranks_of.items() for rank in ranks},
            groups=dict(enumerate(layout.axis_groups())),
            step_s=tuple(self._step_s),
            save_s=tuple(self._save_s),
            start_s=tuple(self._start_s),
            losses=tuple(self._losses),
            generation_s=now_s - generation.began_s,
        )
        return replace(snapshot, late_steps=self._late_steps.take(snapshot))

    def _with_storages(self, views: Sequence[NodeView]) -> tuple[NodeView, ...]:
        """Return the views, the first with what ranks have reported of storages; others add nothing of their own."""
        if not views or views[0].heartbeat is None:
            return tuple(views)
        heartbeat = replace(views[0].heartbeat, storages=(*views[0].heartbeat.storages, *self._storages.values()))
        return (replace(views[0], heartbeat=heartbeat), *views[1:])


def _cause(storage: StorageStatus) -> str:
    is_full = kind_of_error(storage.failure, is_waiting=False) == "storage full"
    return "storage full" if is_full else "storage failed"


def _of_generation(view: NodeView, generation: int) -> NodeView:
    """Return a node's view without the processes of an earlier generation, of which its last heartbeat may be."""
    if view.heartbeat is None or view.heartbeat.generation == generation:
        return view
    return replace(view, heartbeat=replace(view.heartbeat, ranks=(), services=()))
