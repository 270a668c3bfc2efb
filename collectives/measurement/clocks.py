"""Clocks of several hosts on one time line: each rank's distance from rank 0's, and how far that may be wrong.

A rank asks rank 0 for its time and notes when it asked and when it was answered. The answer was given in between, so
the offset is known to half of that interval, and of several intervals the shortest says most. Clocks also drift apart,
by some millionths, so ranks ask before a bench and after it, and what lies between is interpolated. Ranks of one host
read one clock, and ask nothing.

Source: Mills, RFC 5905, section 8 (on-wire protocol).
"""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from fabrictune.foundation.arrays import IntArray

NUM_QUESTIONS = 16
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # one for each start of a system's kernel


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """Offset to add to a rank's clock to read rank 0's, at a moment of the rank's own."""

    at_ns: int
    offset_ns: int = 0
    error_ns: int = 0  # the true offset lies no further away


def host_number() -> int:
    """Return a number that ranks on one host share, and that does not reveal its name."""
    text = BOOT_ID.read_text() if BOOT_ID.exists() else str(time.monotonic_ns())
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def find_offset(asked_ns: list[int], answered_ns: list[int], remote_ns: list[int]) -> ClockOffset:
    """Return the offset of the question that was answered soonest."""
    waits = zip(asked_ns, answered_ns, strict=True)
    wait_ns, best = min((end - begin, number) for number, (begin, end) in enumerate(waits))
    at_ns = (asked_ns[best] + answered_ns[best]) // 2
    return ClockOffset(at_ns=at_ns, offset_ns=remote_ns[best] - at_ns, error_ns=wait_ns // 2 + 1)


def on_clock_of_rank_0(stamp_ns: IntArray, before: ClockOffset, after: ClockOffset) -> tuple[IntArray, int]:
    """Return stamps between two offsets as rank 0 would have taken them, and how far they may be off."""
    span_ns = max(1, after.at_ns - before.at_ns)
    drift = (after.offset_ns - before.offset_ns) / span_ns
    offset_ns = before.offset_ns + np.rint(drift * (stamp_ns - before.at_ns)).astype(np.int64)
    return stamp_ns + offset_ns, max(before.error_ns, after.error_ns)


def measure_offset(hosts: list[int], device: torch.device) -> ClockOffset:
    """Return this rank's offset; all ranks call it together, with the host number of each."""
    own, offset = dist.get_rank(), ClockOffset(at_ns=time.perf_counter_ns())
    for rank in (rank for rank, host in enumerate(hosts) if host != hosts[0]):
        if own == 0:
            _answer(rank, device)
        elif own == rank:
            offset = _ask(device)
    return offset


def _ask(device: torch.device) -> ClockOffset:
    asked, answered, remote = [], [], []
    message = torch.zeros(1, dtype=torch.int64, device=device)
    for _ in range(NUM_QUESTIONS):
        asked.append(time.perf_counter_ns())
        dist.send(message, 0)
        dist.recv(message, 0)
        remote.append(int(message.item()))  # waits for a GPU
        answered.append(time.perf_counter_ns())
    return find_offset(asked, answered, remote)


def _answer(rank: int, device: torch.device) -> None:
    message = torch.zeros(1, dtype=torch.int64, device=device)
    for _ in range(NUM_QUESTIONS):
        dist.recv(message, rank)
        message.item()  # waits for a GPU: the answer is no earlier than the question
        message.fill_(time.perf_counter_ns())
        dist.send(message, rank)
