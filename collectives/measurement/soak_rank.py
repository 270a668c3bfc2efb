"""A soak rank: repeats one all-reduce until it is stopped, and reports every iteration that stalls.

    python -m fabrictune.collectives.measurement.soak_rank RANK RANKS HOST PORT BYTES

One process a rank, over gloo. It writes one JSON object a line: `ready` after the first iterations, `stall` as one
ends, and `end`. Rank 0 stops the job when it reads a line: the stop flag travels with the all-reduce itself, so that
all ranks stop after the same iteration. At the end of its input, which its starter holds open, a rank ends at once,
also where a link that is down holds up the all-reduce.

Times are of the machine's monotonic clock, which all its processes share.
"""

import json
import os
import statistics
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

NUM_WARMUPS = 20
STALL_NS = 50_000_000  # far above an iteration, below TCP's shortest timeout
TIMEOUT_S = 1800.0
MAX_ITERATIONS = 2_000_000
BYTES_PER_ELEMENT = 4


def run_rank(rank: int, num_ranks: int, host: str, port: int, num_bytes: int) -> None:
    """Join the job and repeat until it stops."""
    is_to_stop = threading.Event()
    threading.Thread(target=_follow_starter, args=(is_to_stop,), daemon=True).start()
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{host}:{port}",
        rank=rank,
        world_size=num_ranks,
        timeout=timedelta(seconds=TIMEOUT_S),
    )
    try:
        _repeat(rank, num_ranks, num_bytes, is_to_stop)
    finally:
        dist.destroy_process_group()


def _repeat(rank: int, num_ranks: int, num_bytes: int, is_to_stop: threading.Event) -> None:
    buffer = torch.empty(max(2, num_bytes // BYTES_PER_ELEMENT))
    expected = num_ranks * (num_ranks + 1) / 2
    durations_ns, num_wrong, has_stopped = list[int](), 0, False
    while not has_stopped and len(durations_ns) < MAX_ITERATIONS:
        buffer.fill_(rank + 1)
        buffer[0] = float(is_to_stop.is_set())
        began_ns = time.monotonic_ns()
        dist.all_reduce(buffer)
        ended_ns = time.monotonic_ns()
        has_stopped = bool(buffer[0] > 0)
        num_wrong += int((buffer[1:] != expected).sum())
        durations_ns.append(ended_ns - began_ns)
        if len(durations_ns) == NUM_WARMUPS:
            _tell("ready")
        elif len(durations_ns) > NUM_WARMUPS and ended_ns - began_ns > STALL_NS:
            _tell("stall", began_ns=began_ns, ended_ns=ended_ns)
    median_ns = int(statistics.median(durations_ns))
    _tell("end", iterations=len(durations_ns), median_ns=median_ns, num_wrong=num_wrong)


def _follow_starter(is_to_stop: threading.Event) -> None:
    """Set the event at a line of input, and end this process at the end of it: its starter has ended."""
    for _ in sys.stdin:
        is_to_stop.set()
    os._exit(1)


def _tell(event: str, **values: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run_rank(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
