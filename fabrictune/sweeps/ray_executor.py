"""Executor on the workers of a Ray cluster: one that is named, or one started here for the sweep.

Workers get plain data and give back records; they write nothing, so they need no disk in common, but the files that the
scenario names must be there under the same paths. A worker that dies takes no result with it: Ray gives its run to
another, and only one that kills its worker again and again ends the sweep.

Source: docs.ray.io, "Ray token authentication", for the token, which Ray before 2.52 ignores.
"""

import logging
import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fabrictune.foundation.children import safe_path
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.foundation.time_limits import scaled
from fabrictune.sweeps.executors import Take
from fabrictune.sweeps.points import Task
from fabrictune.sweeps.worker import Worker

MAX_DEATHS = 3  # of workers that had the same run
LOOPBACK = "127.0.0.2"  # Ray takes 127.0.0.1 to mean the machine's address on its network
PATIENCE_S = 5
FIRST_WITH_TOKEN = (2, 52)
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
    answers only to those who have its token, a random one in the environment of this process and its workers. Its
    files are in a folder that no other user can enter, which is removed with the cluster.

    Raises UnavailableError where Ray is not installed or ignores tokens, or there is no cluster.
    """
    require_extra("ray", extra="sweep", where="--on ray")
    for name, value in QUIETLY.items():
        os.environ.setdefault(name, value)
    if not address:
        _set_token()
    import ray

    if not address:
        _require_token_support(ray.__version__)
    with temporary_folder("fabrictune-ray-") as folder:
        try:
            _connect(ray, num_workers, address, folder)
        except (OSError, RuntimeError, ValueError) as error:
            found = f"no cluster ({str(error).splitlines()[0]})"
            raise UnavailableError(
                Mistake(where=address or "ray", found=found, next_step="ray start --head")
            ) from error
        try:
            yield RayCluster(ray)
        finally:
            ray.shutdown()


def _connect(ray: Any, num_workers: int, address: str | None, folder: Path) -> None:
    """Join or start a cluster, from a folder that Ray puts first on its workers' search path for modules."""
    if address:
        _knock(address)
        where: dict[str, Any] = {"address": address}
    else:
        where = {
            "address": "local",
            "num_cpus": num_workers,
            "include_dashboard": False,
            "_node_ip_address": LOOPBACK,
            "_temp_dir": str(folder / "ray"),  # Ray opens it to all users; none can reach it
        }
    with safe_path(), chdir(folder):
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)


def _set_token() -> None:
    """Have Ray ask for a token, whatever the environment said; one that the user gave stays."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)


def _require_token_support(version: str) -> None:
    """Raise UnavailableError where this Ray would start with its ports open to all."""
    if tuple(int(part) for part in version.split(".")[:2]) < FIRST_WITH_TOKEN:
        raise UnavailableError(
            Mistake(
                where="--on ray",
                found=f"Ray {version}, which starts without a token",
                allowed="2.52 or later",
                next_step='pip install "fabrictune[sweep]"',
            )
        )


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
