"""Executors of a sweep's runs: here threads of this process; `ray_executor` has many machines.

The engine runs without the interpreter's lock, so threads run side by side and share what is made once. An executor
gives each record, as it is done, to a function that keeps it, in the thread that called: only one writes.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.points import Task
from fabrictune.sweeps.worker import Worker

Take = Callable[[Task, RunRecord], None]


class Executor(Protocol):
    """Runs tasks in any order."""

    def run(self, tasks: Sequence[Task], take: Take) -> None:
        """Run all tasks and give each with its record to `take`; what was given is kept, whatever happens after."""


@dataclass(kw_only=True)
class Threads:
    """Threads of this process."""

    num_workers: int

    def __post_init__(self) -> None:
        self._worker = Worker(most_threads=max(1, (os.cpu_count() or 1) // self.num_workers))

    def run(self, tasks: Sequence[Task], take: Take) -> None:
        """Run all tasks; on Ctrl-C, and on an error, those under way are given up."""
        stop = Event()
        with ThreadPoolExecutor(self.num_workers) as pool:
            futures = {pool.submit(self._worker.run, task, stop.is_set): task for task in tasks}
            try:
                for future in as_completed(futures):
                    take(futures[future], future.result())
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
