"""The first stage of a save: from the device to host memory, while the next step's passes run.

Values and moments change only in the optimizer's update. A copy begins after one step and must be complete before the
update of the next: on a GPU it runs in a stream of its own, for which the update's stream then waits; on a CPU in a
thread, for which the update waits. The memory is a fixed number of buffers, pinned where there is a GPU.

Shapes: B bytes of a file's data.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from fabrictune.trainer_probe.checkpoint.entries import View, data_bytes, runs


class Stager:
    """Host buffers of one rank, and the copies into them."""

    def __init__(self, views: Sequence[View], num_buffers: int) -> None:
        """Make the buffers for entries, whose tensors stay where they are for the whole run."""
        self._runs = [(offset, run_E.detach()) for offset, run_E in runs(views)]
        self._device = views[0].elements_E.device if views else torch.device("cpu")
        self._is_on_gpu = self._device.type == "cuda"
        self._num_bytes = data_bytes(view.entry for view in views)
        self._free = [
            torch.empty(self._num_bytes, dtype=torch.uint8, pin_memory=self._is_on_gpu) for _ in range(num_buffers)
        ]
        for buffer_B in self._free:
            buffer_B.zero_()  # has its pages now, and not in the first save
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-stage")
        self._stream: Any = torch.cuda.Stream(self._device) if self._is_on_gpu else None  # type: ignore[no-untyped-call]
        self._under_way: Future[None] | None = None
        self._event: Any = None

    @property
    def num_free(self) -> int:
        """Buffers that hold nothing."""
        with self._lock:
            return len(self._free)

    def stage(self) -> "Staged":
        """Start to copy the rank's elements to a free buffer, of which there must be one."""
        with self._lock:
            buffer_B = self._free.pop()
        if self._is_on_gpu:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))
            with torch.cuda.stream(self._stream):
                self._copy(buffer_B)
                self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._event.record(self._stream)
            done: Future[None] = self._thread.submit(self._event.synchronize)
        else:
            done = self._thread.submit(self._copy, buffer_B)
        self._under_way = done
        return Staged(buffer_B, done, lambda: self._release(buffer_B))

    def before_update(self) -> int:
        """Let the update wait for the copy; returns for how long this thread waited, in nanoseconds."""
        if self._under_way is None:
            return 0
        began_ns = time.perf_counter_ns()
        if self._is_on_gpu:
            torch.cuda.current_stream(self._device).wait_event(self._event)
        else:
            self._under_way.exception()  # its error is the save's
        self._under_way = None
        return time.perf_counter_ns() - began_ns

    def close(self) -> None:
        """End the thread once the copy under way is complete."""
        self._thread.shutdown()

    def _copy(self, buffer_B: torch.Tensor) -> None:
        with torch.no_grad():
            for offset, run_E in self._runs:
                num_bytes = len(run_E) * run_E.element_size()
                buffer_B[offset : offset + num_bytes].view(run_E.dtype).copy_(run_E, non_blocking=self._is_on_gpu)

    def _release(self, buffer_B: torch.Tensor) -> None:
        with self._lock:
            self._free.append(buffer_B)


class Staged:
    """A buffer with a rank's elements at one moment; used by several storages, and given back by the last."""

    def __init__(self, buffer_B: torch.Tensor, done: "Future[None]", release: Callable[[], None]) -> None:
        self._buffer_B, self._done, self._release = buffer_B, done, release
        self._lock = threading.Lock()
        self._num_users = 0

    def use(self, num_users: int) -> None:
        """Say how many will call `release`; called once."""
        self._num_users = num_users

    def data(self) -> memoryview:
        """Return the bytes once they are all there; raises what the copy raised."""
        self._done.result()
        return self._buffer_B.numpy().data

    def release(self) -> None:
        """Give the buffer back, once the last user has called this."""
        with self._lock:
            self._num_users -= 1
            is_last = self._num_users == 0
        if is_last:
            self._release()
