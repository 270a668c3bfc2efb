"""Runner of a protocol over a torch store, with a deadline that always holds.

The operations run in a thread of their own: torch's TCPStore bounds its waits, but not the reply to a write, and a
server whose process has stopped would hold its clients indefinitely. Past the deadline the thread is left behind.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

import torch.distributed as dist

from fabrictune.collectives.startup.store_operations import (
    Add,
    CheckKey,
    CompareSet,
    Get,
    OverdueError,
    Pause,
    Set,
    Steps,
    StoreOperation,
    Wait,
)
from fabrictune.foundation.errors import Mistake, StartupError

MAX_GRACE_S = 5.0  # beyond the deadline, to find out who is missing

Result = TypeVar("Result")


def perform(store: dist.Store, steps: Steps[Result], *, deadline_s: float) -> Result:
    """Run a protocol to its end; `deadline_s` is a moment of `time.monotonic`.

    Raises what the protocol raises, and StartupError where the store is lost.
    """
    try:
        operation = next(steps)
        while True:
            began_s = time.monotonic()
            try:
                reply = _carry_out(store, operation, max(0.0, deadline_s - began_s))
            except dist.DistNetworkError as error:
                raise StartupError(_lost(error)) from error
            except dist.DistStoreError:
                operation = steps.throw(OverdueError(time.monotonic() - began_s))
            else:
                operation = steps.send(reply)
    except StopIteration as stop:
        result: Result = stop.value
        return result


def within(timeout_s: float, function: Callable[[], Result]) -> Result:
    """Return or raise what a function does; raises StartupError if it has not ended after the timeout and a grace.

    The grace is as long as the timeout, and MAX_GRACE_S at most.
    """
    limit_s = timeout_s + min(timeout_s, MAX_GRACE_S)
    outcome: SimpleQueue[tuple[Result | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((function(), None))
        except BaseException as error:
            outcome.put((None, error))

    thread = Thread(target=run, name="start-up", daemon=True)
    thread.start()
    try:
        result, error = outcome.get(timeout=limit_s)
    except Empty:
        raise StartupError(
            Mistake(
                where="store",
                found=f"has not answered for {limit_s:g} s",
                next_step="look at the process that serves it: it may be stopped, or cut off",
            )
        ) from None
    thread.join()  # it has nothing left to do; a fork while it ends would copy a lock that it holds
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # a function without a result returns None


def _carry_out(store: dist.Store, operation: StoreOperation, left_s: float) -> str | int | bool | None:
    match operation:
        case Set(key, value):
            store.set(key, value)
        case CompareSet(key, expected, desired):
            return store.compare_set(key, expected, desired).decode()
        case Add(key, amount):
            return store.add(key, amount)
        case Get(key):
            return _get(store, key, left_s)
        case Wait(keys):
            store.wait(list(keys), timedelta(seconds=left_s))
        case CheckKey(key):
            return store.check([key])
        case Pause(seconds):
            time.sleep(min(seconds, left_s))
    return None


def _get(store: dist.Store, key: str, timeout_s: float) -> str:
    """Return a value; torch's `get` waits as long as the store's own timeout, so that is what is set."""
    usual = store.timeout  # type: ignore[attr-defined]  # torch's stubs lack it
    store.set_timeout(timedelta(seconds=timeout_s))
    try:
        return store.get(key).decode()
    finally:
        store.set_timeout(usual)


def _lost(error: Exception) -> Mistake:
    return Mistake(
        where="store",
        found=f"was lost ({str(error).splitlines()[0]})",
        next_step="start the store again if it has ended, then a new attempt",
    )
