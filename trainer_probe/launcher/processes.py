"""Ranks of a small job as processes of this machine, and their results.

Ranks are forked from a process that does nothing else, after it has imported torch once: a fork of this process would
copy locks that threads of its libraries hold, without those threads. The ranks meet through a store that this process
serves on a port the system chose (`collectives/startup`), and communicate over gloo on the loopback device, with a
thread each. The first rank to fail ends the job: the others dump their stacks and are killed, and its error is
reported. Ranks end with this process, however it ends.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize, get_temp_dir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.collectives.startup.stores import connect_store, listen, serve_tcp_store
from fabrictune.foundation.children import safe_path
from fabrictune.foundation.errors import FabrictuneError, Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.launcher import stack_dump

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member, Method

Arrays = Mapping[str, NDArray[Any]]
Target = Callable[["Member"], Arrays]  # a rank in its groups -> its results; of a module, or a partial of such

TIMEOUT_S = 120.0
STARTUP_TIMEOUT_S = 60.0
STOPPED = "stopped by a signal or a debugger, and so the others wait for it"
CONTINUE = "find what stopped it (SIGSTOP, SIGTSTP, a freezer), then start the run again"
SOCKETS_PREFIX = "fabrictune-mp-"
AFTER_MULTIPROCESSING = -200  # it removes its own folder at -100 of its `Finalize`
MAX_SOCKET_FOLDER = 75  # bytes: a socket's name in it has 32 more, and at most 107 in all (unix(7))
_PRELOADED = [
    "__main__",
    "torch.distributed",
    "fabrictune.collectives.startup.process_groups",
    "fabrictune.trainer_probe.training.loop",
]


def launch(
    layout: ParallelLayout,
    target: Target,
    *,
    timeout_s: float | None = None,
    startup_timeout_s: float | None = None,
    request_timeout_s: float | None = None,
    store: StoreAddress | None = None,
    method: "Method" = "ordered",
    backend: str = "gloo",
) -> list[dict[str, NDArray[Any]]]:
    """Call `target(member)` in a process for each rank of a layout, its groups made; returns their arrays by rank.

    The ranks meet in `store`, or in one that is served here, within `startup_timeout_s`. They communicate over gloo, or
    over the backend `ordered`, in NCCL's order (`collectives/startup/ordered_backend`). A program that calls this must
    guard its own start by `if __name__ == "__main__"`, since ranks import it.

    A request between ranks fails after `request_timeout_s`, as long as start-up by default.

    Without timeouts there are limits against hanging, TIMEOUT_S and STARTUP_TIMEOUT_S, scaled.

    Raises UnavailableError where torch is missing, a rank fails, or not all have finished after `timeout_s`.
    """
    timeout_s = timeout_s or scaled(TIMEOUT_S)
    startup_timeout_s = startup_timeout_s or scaled(STARTUP_TIMEOUT_S)
    require_extra("torch", extra="train", where="trainer")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    with temporary_folder("fabrictune-ranks-") as folder, listen() as listener:
        own = StoreAddress(scheme="tcp", host="127.0.0.1", port=listener.getsockname()[1])
        start = partial(
            _start, layout, store or own, folder.name, startup_timeout_s, request_timeout_s, method, backend
        )
        served = serve_tcp_store(listener)
        ranks = [
            context.Process(target=_run_rank, args=(rank, start, target, folder), daemon=True)
            for rank in range(layout.world_size)
        ]
        try:
            _start_forkserver()
            for process in ranks:
                with HeldSignals():  # a rank that runs before its number is known could not be ended
                    process.start()
            _await(ranks, folder, timeout_s)
            del served
        finally:
            for process in ranks:
                if process.pid is not None:
                    process.kill()
                    process.join()
        return [_load(folder / f"{rank}.npz") for rank in range(layout.world_size)]


@cache
def _place_sockets() -> None:
    """Let multiprocessing put the sockets of this process where the next one finds them if this one is killed."""
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder(SOCKETS_PREFIX))
        if len(os.fsencode(folder)) > MAX_SOCKET_FOLDER:
            return
        before, tempfile.tempdir = tempfile.tempdir, str(folder)
        try:
            get_temp_dir()  # which it keeps
        finally:
            tempfile.tempdir = before
        Finalize(None, stack.pop_all().close, exitpriority=AFTER_MULTIPROCESSING)


def _start_forkserver() -> None:
    """Start the forkserver with SIGINT blocked: a terminal's Ctrl-C is for this process, which ends the ranks."""
    with safe_path():
        resource_tracker.ensure_running()  # started by the forkserver, it would undo the mask
    _place_sockets()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with safe_path():
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(
    layout: ParallelLayout,
    address: StoreAddress,
    attempt: str,
    timeout_s: float,
    request_timeout_s: float | None,
    method: "Method",
    backend: str,
    rank: int,
) -> "Member":
    from fabrictune.collectives.startup.process_groups import start_process_groups

    store = connect_store(address, attempt=attempt, timeout_s=timeout_s)
    plan = GroupPlan.of_layout(layout)
    return start_process_groups(
        store,
        plan,
        rank,
        timeout_s=timeout_s,
        request_timeout_s=request_timeout_s,
        backend=backend,
        method=method,
    )


def _run_rank(rank: int, start: Callable[[int], "Member"], target: Target, folder: Path) -> None:
    """Call the target in a rank's own process, and save its arrays or its error."""
    import torch
    import torch.distributed as dist

    threading.Thread(target=_end_with_starter, daemon=True).start()
    stack_dump.answer(folder / f"{rank}.stacks")
    try:
        os.environ.update({"GLOO_SOCKET_IFNAME": "lo", **QUICK_RESOLVER})
        torch.set_num_threads(1)
        arrays: dict[str, Any] = dict(target(start(rank)))
        np.savez(folder / f"{rank}.npz", **arrays)
        dist.destroy_process_group()
    except FabrictuneError as error:
        (folder / f"{rank}.failure").write_text(str(error))
        sys.exit(1)
    except BaseException:
        (folder / f"{rank}.failure").write_text(traceback.format_exc())
        sys.exit(1)


def _end_with_starter() -> None:
    """End this rank when the process that has started the job is gone."""
    starter = multiprocessing.parent_process()
    assert starter is not None, "called in a rank"
    starter.join()
    os._exit(1)


def _await(ranks: Sequence[BaseProcess], folder: Path, timeout_s: float) -> None:
    """Return when every rank has succeeded; raises UnavailableError as soon as one has failed, or at the timeout."""
    deadline = time.monotonic() + timeout_s
    running: dict[Any, int] = {process.sentinel: rank for rank, process in enumerate(ranks)}
    while running:
        ended = wait(list(running), timeout=max(0.0, deadline - time.monotonic()))
        if not ended:
            raise UnavailableError(
                Mistake(
                    where=", ".join(f"rank {rank}" for rank in running.values()),
                    found="\n".join([f"not finished after {timeout_s:g} s", *_places(ranks, running.values(), folder)]),
                    next_step="raise the timeout, or look for ranks that wait for one another",
                )
            )
        failed = []
        for sentinel in ended:
            rank = running.pop(sentinel)
            ranks[rank].join()
            if ranks[rank].exitcode:
                failed.append(rank)
        if failed:
            stopped = [rank for rank in sorted(running.values()) if _is_stopped(ranks[rank])]
            places = _places(ranks, set(running.values()).difference(stopped), folder)
            raise UnavailableError(
                *(Mistake(where=f"rank {rank}", found=STOPPED, next_step=CONTINUE) for rank in stopped),
                *(_describe_failure(rank, ranks[rank], folder) for rank in failed),
                *([Mistake(where="the other ranks", found="\n".join(["were ended", *places]))] if places else []),
            )


def _is_stopped(process: BaseProcess) -> bool:
    """Whether a signal or a debugger keeps a process from running; others then fail for want of its answers."""
    status = Path(f"/proc/{process.pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] in ("T", "t")


def _places(ranks: Sequence[BaseProcess], running: Iterable[int], folder: Path) -> list[str]:
    """Return the stacks of the ranks that still run."""
    asked = {rank: (ranks[rank].pid, folder / f"{rank}.stacks") for rank in sorted(running)}
    return stack_dump.ask({rank: (pid, path) for rank, (pid, path) in asked.items() if pid is not None})


def _describe_failure(rank: int, process: BaseProcess, folder: Path) -> Mistake:
    path = folder / f"{rank}.failure"
    text = path.read_text() if path.exists() else f"ended with exit code {process.exitcode}"
    return Mistake(where=f"rank {rank}", found=f"failed\n{text.rstrip()}")


def _load(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)
