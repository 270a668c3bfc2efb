"""The second stage of a save: one storage of a rank, written by a thread of its own.

Each rank writes its file and behind it the file's index. In a shared storage rank 0 then waits for the indices of all
ranks, checks that they are of this start and have every element, and writes the manifest. A rank that dies leaves its
index out, and with it the manifest. In a node's memory each index stands for itself.

An error or a missing rank ends the save and no more; the next is tried anew. A storage with the record of a later
generation is not written any more.
"""

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from fabrictune.trainer_probe.checkpoint.listing import MAX_RECORD_BYTES
from fabrictune.trainer_probe.checkpoint.manifest import MAX_BYTES, Manifest, merge, uncovered
from fabrictune.trainer_probe.checkpoint.names import (
    MANIFEST,
    CheckpointId,
    data_file,
    generation_file,
    generation_of,
    index_file,
)
from fabrictune.trainer_probe.checkpoint.retention import Retention, clean, clean_node, remove
from fabrictune.trainer_probe.checkpoint.saves import FilePlan, Outcome, Save, SaveReport, Writer
from fabrictune.trainer_probe.checkpoint.storage import Content, Storage
from fabrictune.trainer_probe.training.section_timeouts import NUM_RECENT, SectionTimeouts

POLL_S = (0.01, 1.0)  # between looks for the indices of other ranks: at first, and at most


@dataclass(frozen=True, kw_only=True)
class Tier:
    """A storage of checkpoints, and which of them it gets."""

    storage: Storage
    every: int = 1  # saves, of which the last is written here
    is_per_node: bool = False  # a node's own: each rank writes all that it holds, and needs no other rank
    retention: Retention = field(default_factory=Retention)


class FencedError(OSError):
    """A storage that a later generation of the job has taken over."""


class TierWriter:
    """The thread that writes one rank's saves to a tier."""

    def __init__(
        self,
        tier: Tier,
        writer: Writer,
        plan: FilePlan,
        *,
        generation: int,
        first_step: int,
        timeouts: SectionTimeouts,
        on_report: Callable[[SaveReport], None],
    ) -> None:
        self.tier = tier
        self._writer, self._plan = writer, plan
        self._generation, self._first_step = generation, first_step
        self._timeouts, self._on_report = timeouts, on_report
        self._is_recorded = False
        self._recent_s = deque[float](maxlen=NUM_RECENT)
        self._saves = queue.SimpleQueue[Save | None]()
        self._changed = threading.Condition()
        self._num_under_way = 0
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, name="checkpoint-write", daemon=True)
        self._thread.start()

    @property
    def num_under_way(self) -> int:
        """Saves that are not yet complete or given up, on rank 0 with their manifests."""
        with self._changed:
            return self._num_under_way

    def put(self, save: Save) -> None:
        """Write a save, after those before it."""
        with self._changed:
            self._num_under_way += 1
        self._saves.put(save)

    def wait(self, most: int, timeout_s: float) -> bool:
        """Return whether at most so many saves are under way, within a time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._num_under_way <= most, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Return whether all saves came to an end within a time; later ones are not written."""
        is_done = self.wait(0, timeout_s)
        self._is_ended = True
        self._saves.put(None)
        return is_done

    def skip(self, save_id: CheckpointId, cause: str) -> None:
        """Report a save that this storage does not get."""
        self._report(save_id, "skipped", cause)

    def _run(self) -> None:
        while (save := self._saves.get()) is not None and not self._is_ended:
            try:
                num_bytes = self._write(save)
                elapsed_s = time.monotonic() - save.began_s
                self._recent_s.append(elapsed_s)
                self._report(save.id, "saved", "", save.blocked_ns, num_bytes, elapsed_s)
            except Exception as error:  # training goes on whatever becomes of a save
                self._report(save.id, "failed", f"{type(error).__name__}: {error}", save.blocked_ns)
            finally:
                with self._changed:
                    self._num_under_way -= 1
                    self._changed.notify_all()

    def _write(self, save: Save) -> int:
        """Write a save; returns the bytes that this rank wrote."""
        limit_s = self._timeouts.save_s(self._recent_s)
        folder, rank = str(save.id), self._writer.rank
        is_leader = rank == 0 and not self.tier.is_per_node
        try:
            try:
                self._fence()
                first = self._writer.first_bytes(self._plan, save)
                content: Content = chain((first,), self._plan.chunks(save.staged.data()))
                num_bytes = self.tier.storage.write(f"{folder}/{data_file(rank)}", content)
                index = self._writer.index(self._plan, save, first, is_per_node=self.tier.is_per_node)
            finally:
                save.staged.release()
            num_bytes += self.tier.storage.write(f"{folder}/{index_file(rank)}", (index.to_bytes(),))
            if is_leader:
                num_bytes += self._complete(save, deadline_s=time.monotonic() + limit_s)
        except FencedError:
            raise
        except Exception:
            if is_leader:
                with suppress(OSError):
                    remove(self.tier.storage, save.id)
            raise
        if self.tier.is_per_node or is_leader:
            with suppress(OSError):  # tried again after the next save
                (clean_node if self.tier.is_per_node else clean)(self.tier.storage, self.tier.retention, save.id)
        return num_bytes

    def _complete(self, save: Save, *, deadline_s: float) -> int:
        """Write the manifest once every rank's index is there; returns its size."""
        storage, folder = self.tier.storage, str(save.id)
        wanted = {index_file(rank): rank for rank in range(self._writer.num_ranks)}
        indices: dict[str, Manifest] = {}
        pause_s = POLL_S[0]
        while True:
            files = storage.files(folder)
            for name in sorted((wanted.keys() & files.keys()) - indices.keys()):
                content = storage.read(f"{folder}/{name}", 0, MAX_BYTES)
                index = Manifest.from_bytes(content, f"{storage.url}/{folder}/{name}")
                if index.attempt == self._writer.attempt:
                    indices[name] = index
            if len(indices) == len(wanted):
                break
            if time.monotonic() > deadline_s or self._is_ended:
                missing = ", ".join(str(rank) for name, rank in wanted.items() if name not in indices)
                raise TimeoutError(f"ranks that have not written their files: {missing}")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, POLL_S[1])
        whole = merge([indices[name] for name in sorted(indices)])
        if missing_parts := uncovered(whole):
            raise OSError(f"no rank wrote all of {missing_parts[0]}")
        self._fence()
        return storage.write(f"{folder}/{MANIFEST}", (whole.to_bytes(),))

    def _fence(self) -> None:
        """Record this generation, once; raises FencedError where a later one is recorded."""
        storage = self.tier.storage
        found = [generation for name in storage.names() if (generation := generation_of(name)) is not None]
        if max(found, default=-1) > self._generation:
            raise FencedError(f"generation {max(found)} has taken over from {self._generation}")
        if not self._is_recorded and (self.tier.is_per_node or self._writer.rank == 0):
            values = {"generation": self._generation, "first_step": self._first_step}
            content = json.dumps(values).encode()
            assert len(content) < MAX_RECORD_BYTES, "read whole"
            storage.write(generation_file(self._generation), (content,))
            self._is_recorded = True

    def _report(
        self,
        save_id: CheckpointId,
        outcome: Outcome,
        cause: str,
        blocked_ns: int = 0,
        written_bytes: int = 0,
        elapsed_s: float = 0.0,
    ) -> None:
        self._on_report(
            SaveReport(
                step=save_id.step,
                generation=save_id.generation,
                tier=self.tier.storage.url,
                outcome=outcome,
                cause=cause,
                blocked_ns=blocked_ns,
                written_bytes=written_bytes,
                elapsed_s=elapsed_s,
            )
        )
