"""Bandwidth and latency of RDMA writes over all queue pairs of an endpoint.

*Bandwidth*: every queue pair keeps a number of writes on their way; bytes of those that completed within the time
measured, over that time. *Latency*: one write at a time, from posting to its completion, so a full round trip and what
Python costs; perftest gives half of a round trip, without that.

Both ends of a measurement in two directions do this at once.
"""

import time
from dataclasses import dataclass

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.verbs.endpoint import QUEUE_DEPTH, SUCCESS, VerbsEndpoint
from fabrictune.rdma_bench.verbs.poll import IsAbandoned, polling

MAX_MESSAGE_BYTES = 2**24
MAX_DURATION_S = 600.0
MAX_ITERATIONS = 50_000  # whose times fit into one message
LONGEST_WRITE_S = 120.0


@dataclass(frozen=True, kw_only=True)
class TransferSpec:
    """Writes of a measurement, and their duration."""

    message_bytes: int = 65536
    num_in_flight: int = 16  # of each queue pair
    duration_s: float = 1.0
    num_iterations: int = 200  # of a latency

    def __post_init__(self) -> None:
        bounds = {
            "message_bytes": (1, MAX_MESSAGE_BYTES),
            "num_in_flight": (1, QUEUE_DEPTH),
            "duration_s": (0.01, MAX_DURATION_S),
            "num_iterations": (1, MAX_ITERATIONS),
        }
        mistakes = [
            Mistake(where=name, found=f"{getattr(self, name)}", allowed=f"{low} to {high}")
            for name, (low, high) in bounds.items()
            if not low <= getattr(self, name) <= high
        ]
        if mistakes:
            raise InputError(*mistakes)


@dataclass(frozen=True, kw_only=True)
class BandwidthResult:
    """Bytes written in a time."""

    num_bytes: int
    duration_ns: int


@dataclass(frozen=True, kw_only=True)
class LatencyResult:
    """Times of single writes, in order."""

    after_ns: tuple[int, ...]


def measure_bandwidth(endpoint: VerbsEndpoint, spec: TransferSpec, is_abandoned: IsAbandoned) -> BandwidthResult:
    """Write as fast as possible for `duration_s`, then let what is on its way end."""
    num_queue_pairs = endpoint.num_queue_pairs
    free = [spec.num_in_flight] * num_queue_pairs
    begin_ns = end_ns = time.monotonic_ns()
    num_completed = 0
    for now_ns in polling(spec.duration_s, is_abandoned, pause_s=0):
        for queue_pair in range(num_queue_pairs):
            for _ in range(free[queue_pair]):
                endpoint.post_write(queue_pair, spec.message_bytes)
            free[queue_pair] = 0
        for completed in _polled(endpoint):
            free[completed] += 1
            num_completed += 1
            end_ns = now_ns
    _drain(endpoint, spec.num_in_flight * num_queue_pairs - sum(free), is_abandoned)
    return BandwidthResult(num_bytes=num_completed * spec.message_bytes, duration_ns=end_ns - begin_ns)


def measure_latency(endpoint: VerbsEndpoint, spec: TransferSpec, is_abandoned: IsAbandoned) -> LatencyResult:
    """Write once, wait for it, and again, over the first queue pair."""
    after_ns = []
    for _ in range(spec.num_iterations):
        begin_ns = time.monotonic_ns()
        endpoint.post_write(0, spec.message_bytes)
        _drain(endpoint, 1, is_abandoned)
        after_ns.append(time.monotonic_ns() - begin_ns)
    return LatencyResult(after_ns=tuple(after_ns))


def _drain(endpoint: VerbsEndpoint, num_writes: int, is_abandoned: IsAbandoned) -> None:
    if not num_writes:
        return
    for _ in polling(scaled(LONGEST_WRITE_S), is_abandoned, pause_s=0):
        num_writes -= len(_polled(endpoint))
        if not num_writes:
            return
    raise UnavailableError(Mistake(where=endpoint.place.device, found=f"writes that do not end: {num_writes}"))


def _polled(endpoint: VerbsEndpoint) -> list[int]:
    """Return the queue pair of each write that has ended; raises UnavailableError for one that failed."""
    completions = endpoint.poll()
    for completion in completions:
        if completion.status != SUCCESS:
            found = f"a write ended with status {completion.status}"
            raise UnavailableError(
                Mistake(where=endpoint.place.device, found=found, next_step="is the peer reachable?")
            )
    return [completion.queue_pair for completion in completions]
