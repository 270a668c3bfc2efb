"""Executor on the workers of a Ray cluster: one that is named, or one started here for the sweep.

Workers get plain data and give back records; they write nothing, so they need no disk in common, but the files that the
scenario names must be there under the same paths. A worker that dies takes no result with it: Ray gives its run to
another, and only one that kills its worker again and again ends the sweep.
"""

import logging
import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.time_limits import scaled
from fabrictune.sweeps.executors import Take
from fabrictune.sweeps.points import Task
from fabrictune.sweeps.worker import Worker

MAX_DEATHS = 3  # of workers that had the same run
LOOPBACK = "127.0.0.2"  # Ray takes 127.0.0.1 to mean the machine's address on its network
PATIENCE_S = 5
QUIETLY = {  # read by Ray when it is imported: nothing is sent to its makers, and GPUs stay as they are
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class RayCluster:
    """Workers of Ray; open one with `open_cluster`."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._run = ray.remote(max_retries=MAX_DEATHS, num_cpus=1)(_run)

    def run(self, tasks: Sequence[Task], take: Take) -> None:
        """Run all tasks; raises UnavailableError for one whose workers all died."""
        task_by_result = {self._run.remote(task): task for task in tasks}
        waiting = list(task_by_result)
        while waiting:
            done, waiting = self._ray.wait(waiting)
            for result in done:
                task = task_by_result.pop(result)
                take(task, self._fetch(result, task))

    def _fetch(self, result: Any, task: Task) -> RunRecord:
        fatal = self._ray.exceptions
        try:
            outcome: RunRecord | tuple[Mistake, ...] = self._ray.get(result)
        except (fatal.WorkerCrashedError, fatal.OutOfMemoryError):
            raise UnavailableError(
                Mistake(
                    where=f"point {dict(task.values)}, seed {task.seed}",
                    found=f"{MAX_DEATHS + 1} workers died of it",
                    next_step="run its scenario alone; for want of memory, use fewer workers",
                )
            ) from None
        if isinstance(outcome, RunRecord):
            return outcome
        raise UnavailableError(*outcome)


@contextmanager
def open_cluster(num_workers: int, address: str | None = None) -> Iterator[RayCluster]:
    """Join the cluster at `address`, or start one of `num_workers` here.

    Some of Ray's ports are open on all of a machine's addresses, whatever its settings; a cluster of our own therefore
    answers only to those who have its token, a random one in the environment of this process and its workers.

    Raises UnavailableError where Ray is not installed, or there is no cluster.
    """
    require_extra("ray", extra="sweep", where="--on ray")
    for name, value in (QUIETLY if address else {**QUIETLY, **_guarded()}).items():
        os.environ.setdefault(name, value)
    import ray

    own: dict[str, Any] = {
        "address": "local",
        "num_cpus": num_workers,
        "include_dashboard": False,
        "_node_ip_address": LOOPBACK,
    }
    where: dict[str, Any] = {"address": address} if address else own
    try:
        if address:
            _knock(address)
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
    except (OSError, RuntimeError, ValueError) as error:
        found = f"no cluster ({str(error).splitlines()[0]})"
        raise UnavailableError(Mistake(where=address or "ray", found=found, next_step="ray start --head")) from error
    try:
        yield RayCluster(ray)
    finally:
        ray.shutdown()


def _guarded() -> dict[str, str]:
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _knock(address: str) -> None:
    """Raise OSError or ValueError where nobody listens at HOST:PORT; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=scaled(PATIENCE_S)):
        pass


def _run(task: Task) -> RunRecord | tuple[Mistake, ...]:
    """Run a task in this process, with what its earlier tasks have left; or say why this machine cannot."""
    try:
        return _worker().run(task)
    except UnavailableError as error:
        return error.mistakes


@cache
def _worker() -> Worker:
    return Worker()
