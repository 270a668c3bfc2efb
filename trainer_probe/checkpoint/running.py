"""The checkpoints of a run: where it keeps them, what it goes on from, and what became of its saves."""

import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.checkpoint.retention import Retention
from fabrictune.trainer_probe.checkpoint.storages import open_storage

if TYPE_CHECKING:
    from fabrictune.trainer_probe.checkpoint.saves import SaveReport
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.training.hooks import Hook, Run
    from fabrictune.trainer_probe.training.progress import StepReport
    from fabrictune.trainer_probe.training.training import Training


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    """What a run keeps, and whether it goes on from the newest."""

    url: str
    save_every: int | None = None  # steps; None: no saves
    resumes: bool = False
    retention: Retention = field(default_factory=Retention)

    def check(self) -> None:
        """Raise InputError or UnavailableError for a place that cannot be opened, or settings without effect."""
        open_storage(self.url, where="--checkpoint")
        if self.save_every is None and not self.resumes:
            raise InputError(
                Mistake(where="--checkpoint", found="neither --save-every nor --resume", next_step="give one of them")
            )


class RunCheckpoints:
    """The checkpoints of one rank's run. Notes to the user come from rank 0, in the run's own thread."""

    def __init__(
        self,
        settings: CheckpointSettings,
        comm: "Comm",
        *,
        last_step: int,
        num_local_ranks: int,
        on_note: Callable[[str], None],
    ) -> None:
        """Open the place and agree on this start's generation; every rank calls this."""
        from fabrictune.trainer_probe.checkpoint.checkpointer import Checkpointer
        from fabrictune.trainer_probe.checkpoint.restoring import next_generation
        from fabrictune.trainer_probe.checkpoint.tier import Tier

        self._settings, self._comm = settings, comm
        self._on_note = on_note if comm.rank == 0 else lambda note: None
        self._reports: queue.SimpleQueue[SaveReport] = queue.SimpleQueue()
        self._storage = open_storage(settings.url, where="--checkpoint")
        self._checkpointer = None
        if settings.save_every is not None:
            self._checkpointer = Checkpointer(
                comm,
                [Tier(storage=self._storage, retention=settings.retention)],
                save_every=settings.save_every,
                generation=next_generation(comm, [self._storage]),
                num_local_ranks=num_local_ranks,
                last_step=last_step,
                on_report=self._reports.put,
            )

    @property
    def hooks(self) -> "Sequence[Hook]":
        """What takes part in the run."""
        from fabrictune.trainer_probe.training.hooks import Hook

        return () if self._checkpointer is None else (self._checkpointer.hook, Hook(after_step=self._after_step))

    def restore(self, training: "Training") -> bool:
        """Return whether the training goes on from a checkpoint; raises the errors of `restore`."""
        from fabrictune.trainer_probe.checkpoint.restoring import restore

        if not self._settings.resumes:
            return False
        found = restore(training, [self._storage], say=self._on_note)
        if found is None:
            self._on_note(f"no checkpoint in {self._storage.url}: the run begins at its first step")
            return False
        self._on_note(f"resumed from {found.id}: {found.read_bytes:,} bytes read in {found.elapsed_s:.2f} s")
        return True

    def close(self) -> None:
        """Wait for saves that are under way, and note what did not go well."""
        if self._checkpointer is not None and not self._checkpointer.close():
            self._on_note("the last checkpoint was not complete when the run ended")
        self._pass_on()

    def _after_step(self, run: "Run", report: "StepReport") -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        while not self._reports.empty():
            report = self._reports.get()
            if report.outcome != "saved":
                self._on_note(f"checkpoint of step {report.step} {report.outcome}: {report.cause}")
