"""Garbage collection at the same step on every rank, in place of Python's own moments.

A collection stops one rank, and through its requests all others: at moments of its own on each rank, it delays a step
once for every rank; on all ranks at once, once. What is alive when training begins is left out of collections.

Source: MegaScale (NSDI'24), 6.3: irregular garbage collection among the causes of a decaying MFU; torchtitan
`tools/utils.py` (GarbageCollection).
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fabrictune.trainer_probe.training.hooks import Hook, Run

OnCollection = Callable[[int, int], None]  # begin and end, by the machine's clock


@contextmanager
def watched_collections(on_collection: OnCollection) -> Iterator[None]:
    """Call `on_collection` after each collection while the block runs."""
    began_ns = 0

    def note(phase: str, info: Mapping[str, Any]) -> None:
        nonlocal began_ns
        if phase == "start":
            began_ns = time.perf_counter_ns()
        else:
            on_collection(began_ns, time.perf_counter_ns())

    gc.callbacks.append(note)
    try:
        yield
    finally:
        gc.callbacks.remove(note)


@contextmanager
def collected_together(every: int) -> Iterator[Hook]:
    """Yield the hook that collects before every so many steps, automatic collection off; with 0, one that does nothing.

    The first collection is before the first step, and leaves what survives it out of later ones.
    """
    if every == 0:
        yield Hook()
        return
    was_enabled, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    has_begun = False

    def collect(run: Run, step: int) -> None:
        nonlocal has_begun
        if not has_begun or step % every == 0:
            gc.collect()
        if not has_begun:
            has_begun = True
            gc.freeze()

    gc.disable()
    try:
        yield Hook(before_step=collect)
    finally:
        if not was_frozen:
            gc.unfreeze()
        if was_enabled:
            gc.enable()
