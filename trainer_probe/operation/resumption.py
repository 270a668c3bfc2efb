"""A rank's checkpoints: the newest state that all ranks take up, the saves of this generation, and the last one."""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fabrictune.foundation.output_files import locked
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.operation.keys import read_key
from fabrictune.trainer_probe.operation.memory_pull import pull
from fabrictune.trainer_probe.operation.node_memory import NodeMemory
from fabrictune.trainer_probe.operation.pages import RankPage
from fabrictune.trainer_probe.operation.tasks import RankTask, SavePlan
from fabrictune.trainer_probe.training.hooks import Hook, Run

if TYPE_CHECKING:
    from fabrictune.trainer_probe.checkpoint.saves import SaveReport
    from fabrictune.trainer_probe.checkpoint.storage import Storage
    from fabrictune.trainer_probe.checkpoint.tier import Tier
    from fabrictune.trainer_probe.training.training import Training

LAST_SAVE_S = 3600.0  # for earlier saves to be complete when the run ends
Report = Callable[..., None]  # kind and values of an event


class RankSaves:
    """The checkpoints of a rank in one generation: what it goes on from, and what it saves."""

    def __init__(self, task: RankTask, comm: Comm, page: RankPage, report: Report) -> None:
        from fabrictune.trainer_probe.checkpoint.checkpointer import Checkpointer
        from fabrictune.trainer_probe.checkpoint.storages import open_storage

        plan = task.job.saves
        self._task, self._page = task, page
        self._shared, self._own = [open_storage(url) for url in plan.urls], open_storage(str(task.memory))
        self._checkpointer: Checkpointer | None = None
        self.source = "initial"
        self.read_bytes = 0  # by all ranks
        tiers = _tiers(plan, self._shared, self._own)
        if tiers:
            self._checkpointer = Checkpointer(
                comm,
                tiers,
                save_every=plan.memory_every or plan.every,
                generation=task.job.generation,
                num_local_ranks=len(task.ranks_here),
                on_report=lambda save: _report(save, task, report),
            )

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """What takes part in the run."""
        return () if self._checkpointer is None else (self._checkpointer.hook,)

    def restore(self, training: "Training") -> bool:
        """Return whether the training goes on from a checkpoint, the newest that all ranks can read."""
        from fabrictune.trainer_probe.checkpoint.restoring import restore

        if self._checkpointer is None:
            return False
        self._take_copies()
        storages = [self._own, *self._shared]
        found = restore(training, storages, before_step=self._task.job.before_step, say=_say)
        if found is None:
            return False
        self.read_bytes = found.read_bytes
        self.source = "memory" if found.is_from_memory else "storage"
        return True

    def _take_copies(self) -> None:
        """Take what this node's ranks need from the memory of other nodes; the first rank that asks does it for all."""
        task = self._task
        done = task.memory / f".taken-{task.job.generation}"
        if not task.holders:
            return
        with locked(task.memory):
            if done.exists():
                return
            memory = NodeMemory(task.memory, max_bytes=shutil.disk_usage(task.memory).total)
            generation = task.job.generation
            result = pull(memory, read_key(task.key), task.holders, ranks=task.ranks_here, generation=generation)
            for failure in result.failures:
                _say(f"copies: {failure}")
            done.touch()

    def save_last(self, run: Run) -> None:
        """Save the run's last state, and return when all saves are complete."""
        if self._checkpointer is not None:
            self._page.section("save")
            self._checkpointer.save(run, LAST_SAVE_S)
            if not self._checkpointer.close(LAST_SAVE_S):
                _say("the last checkpoint was not complete when the run ended")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _tiers(plan: SavePlan, shared: "Sequence[Storage]", own: "Storage") -> "list[Tier]":
    """Return the places of saves: each storage, and the node's memory where saves are more frequent."""
    from fabrictune.trainer_probe.checkpoint.retention import MIN_PER_NODE, Retention
    from fabrictune.trainer_probe.checkpoint.tier import Tier

    retention = Retention(num_last=plan.keep)
    every = plan.every // plan.memory_every if plan.memory_every and plan.every else 1
    tiers = [Tier(storage=storage, every=every, retention=retention) for storage in shared]
    if plan.memory_every:
        tiers.append(Tier(storage=own, is_per_node=True, retention=Retention(num_last=MIN_PER_NODE)))
    return tiers


def _report(save: "SaveReport", task: RankTask, report: Report) -> None:
    """Report a save: a shared storage's by rank 0, whose manifest completes it, and failures by every rank."""
    tier = "memory" if save.tier == str(task.memory) else save.tier
    head = {"generation": save.generation, "step": save.step, "tier": tier}
    if save.outcome == "saved":
        if task.rank == 0:
            report(
                "saved",
                **head,
                blocked_ns=save.blocked_ns,
                written_bytes=save.written_bytes,
                elapsed_s=save.elapsed_s,
            )
    elif save.outcome == "failed" or task.rank == 0:
        report("save failed", **head, cause=f"rank {task.rank}: {save.cause}", outcome=save.outcome)
