"""Communication of a group of ranks: an all-reduce or all-to-all of known whole numbers, checked and timed.

A group is made for each test and forgotten with it, so that one that fails leaves the others as they are. A rank that
does not come, or comes late, lets the test fail within its limit. Bandwidth is bus bandwidth, as of nccl-tests.

Left out: NCCL. Groups communicate over gloo, which tests hosts and their network, not GPUs (`coll bench` does).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from fabrictune.foundation.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

Operation = Literal["all_reduce", "all_to_all"]

NUM_ELEMENTS = 2**20  # of four bytes
NUM_ROUNDS = 4
_WRAP = 251  # values stay whole in single precision for sums over 66,000 ranks


def run_group(
    store: "dist.Store", name: str, ranks: list[int], rank: int, *, operation: Operation, limit_s: float
) -> dict[str, Any]:
    """Return this rank's bandwidth in a group, and what went wrong: JSON values `rate_bps`, `faults`."""
    import torch.distributed as dist

    place, timeout = ranks.index(rank), timedelta(seconds=limit_s)
    try:
        group = dist.ProcessGroupGloo(dist.PrefixStore(name, store), place, len(ranks), timeout)
        make = _all_reduce if operation == "all_reduce" else _all_to_all
        times_s, num_wrong = [], 0
        for _ in range(NUM_ROUNDS):
            trial = make(group, place, len(ranks))
            began_s = time.perf_counter()
            trial.run()
            times_s.append(time.perf_counter() - began_s)
            num_wrong += int((trial.result != trial.expected).sum())
    except (RuntimeError, ValueError) as error:
        return {"rate_bps": 0.0, "faults": [str(error).splitlines()[0][:200]]}
    share = (2 if operation == "all_reduce" else 1) * (len(ranks) - 1) / len(ranks)
    rate_bps = share * NUM_ELEMENTS * 4 * BITS_PER_BYTE / min(times_s)
    faults = [f"{num_wrong:,} wrong elements"] if num_wrong else []
    return {"rate_bps": rate_bps, "faults": faults}


@dataclass(frozen=True, kw_only=True)
class _Trial:
    run: Callable[[], object]
    result: "torch.Tensor"
    expected: "torch.Tensor"


def _all_reduce(group: "dist.ProcessGroupGloo", place: int, size: int) -> _Trial:
    import torch

    places = torch.arange(NUM_ELEMENTS)
    values = ((places + place) % _WRAP).float()
    expected = torch.zeros(NUM_ELEMENTS)
    for other in range(size):
        expected += ((places + other) % _WRAP).float()
    return _Trial(run=lambda: _request(group, "allreduce", [values]), result=values, expected=expected)


def _all_to_all(group: "dist.ProcessGroupGloo", place: int, size: int) -> _Trial:
    import torch

    part = NUM_ELEMENTS // size
    sent = (torch.arange(part * size) // part * size + place).float()
    result = torch.zeros_like(sent)
    expected = (torch.arange(part * size) // part + place * size).float()
    parts = [part] * size
    return _Trial(
        run=lambda: _request(group, "alltoall_base", result, sent, parts, parts), result=result, expected=expected
    )


def _request(group: "dist.ProcessGroupGloo", operation: str, *arguments: Any) -> None:
    """Wait for a request; torch's stubs do not have those of its backends."""
    getattr(group, operation)(*arguments).wait()
