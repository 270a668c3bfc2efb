"""Comm that waits for each collective at once, and counts its page faults.

The ledger has the end of a wait, not of a request: a gathering that is asked for early and waited for late would seem
to last as long as the work between. Waited for at once, its time is its own. The count of page faults is the
process's: of its main thread, gloo's workers and gloo's loop.
"""

import resource
from typing import Any

import torch

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.trainer_probe.comm import Comm, Handle


class CountingComm(Comm):
    """Comm with the page faults of gatherings and scatterings, in order of requests."""

    def __init__(self, layout: ParallelLayout, *arguments: Any) -> None:
        super().__init__(layout, *arguments)
        self.page_faults: list[int] = []  # UNKNOWN where the wait came later
        self.waits_at_once = True

    def all_gather(self, output: torch.Tensor, tensor: torch.Tensor, **settings: Any) -> Handle:
        """Concatenate the group's tensors in `output`."""
        begin = _page_faults()
        return self._counted(begin, super().all_gather(output, tensor, **settings))

    def reduce_scatter(self, output: torch.Tensor, tensor: torch.Tensor, **settings: Any) -> Handle:
        """Sum the group's tensors and write this member's part to `output`."""
        begin = _page_faults()
        return self._counted(begin, super().reduce_scatter(output, tensor, **settings))

    def _counted(self, begin: int, handle: Handle) -> Handle:
        if self.waits_at_once:
            handle.wait()  # the caller's own wait returns at once
        self.page_faults.append(_page_faults() - begin if self.waits_at_once else UNKNOWN)
        return handle


def _page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
