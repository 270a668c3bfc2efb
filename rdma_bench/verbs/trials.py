"""One trial of a queue pair while its path is dead for a while, as the sender sees it.

*Idle*: one request, posted once the path is cut. How long it takes is the whole answer: until its error, how long a
dead path takes to be noticed; until its success, when traffic resumes.
*Continuous*: a few requests always on their way, while somebody cuts the path. The longest time between two successes
is the stall. The two differ, since the timer of a busy queue pair was started by an earlier packet.
*Refused*: one message to a peer that has no receive posted, which ends when the retries for that are used up.

A trial knows nothing of the cut, so that no two clocks are compared; it ends with an error, once a stall is over, after
its limit, or when its controller is gone.
"""

import time
from dataclasses import dataclass
from typing import Literal

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import NS_PER_S
from fabrictune.rdma_bench.verbs.endpoint import QUEUE_DEPTH, SUCCESS, VerbsEndpoint
from fabrictune.rdma_bench.verbs.poll import IsAbandoned, polling

Traffic = Literal["idle", "continuous", "refused"]
TRAFFICS: tuple[Traffic, ...] = ("idle", "continuous", "refused")

MAX_LIMIT_S = 3600.0
TAIL_NS = 100_000_000  # of traffic after a stall, before a trial ends


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """Settings of a sender in a trial."""

    traffic: Traffic = "idle"
    message_bytes: int = 1024
    num_in_flight: int = 2
    limit_s: float = 60.0
    stall_s: float = 0.05  # what counts as one, in continuous traffic

    def __post_init__(self) -> None:
        checks = {
            "traffic": (self.traffic, self.traffic in TRAFFICS, ", ".join(TRAFFICS)),
            "message_bytes": (self.message_bytes, 1 <= self.message_bytes <= 2**20, f"1 to {2**20}"),
            "num_in_flight": (self.num_in_flight, 1 <= self.num_in_flight <= QUEUE_DEPTH, f"1 to {QUEUE_DEPTH}"),
            "limit_s": (self.limit_s, 0 < self.limit_s <= MAX_LIMIT_S, f"above 0, to {MAX_LIMIT_S:.0f}"),
            "stall_s": (self.stall_s, self.stall_s > 0, "above 0"),
        }
        mistakes = [
            Mistake(where=name, found=f"{found}", allowed=allowed)
            for name, (found, is_sound, allowed) in checks.items()
            if not is_sound
        ]
        if mistakes:
            raise InputError(*mistakes)


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """Outcome of a trial."""

    status: int | None  # of the request that ended it; None: the limit came first
    num_completed: int
    after_ns: int  # idle: from posting to its end; continuous: from the last success to the error, or the longest stall


def run_trial(endpoint: VerbsEndpoint, spec: TrialSpec, is_abandoned: IsAbandoned) -> TrialResult:
    """Run a trial on the first queue pair of a connected endpoint."""
    run = _run_continuous if spec.traffic == "continuous" else _run_one
    return run(endpoint, spec, is_abandoned)


def _run_one(endpoint: VerbsEndpoint, spec: TrialSpec, is_abandoned: IsAbandoned) -> TrialResult:
    post = endpoint.post_send if spec.traffic == "refused" else endpoint.post_write
    begin_ns = time.monotonic_ns()
    post(0, spec.message_bytes)
    for now_ns in polling(spec.limit_s, is_abandoned):
        for completion in endpoint.poll():
            is_good = completion.status == SUCCESS
            return TrialResult(status=completion.status, num_completed=int(is_good), after_ns=now_ns - begin_ns)
    return TrialResult(status=None, num_completed=0, after_ns=time.monotonic_ns() - begin_ns)


def _run_continuous(endpoint: VerbsEndpoint, spec: TrialSpec, is_abandoned: IsAbandoned) -> TrialResult:
    num_completed = num_in_flight = longest_ns = 0
    last_ns = resumed_ns = time.monotonic_ns()
    for now_ns in polling(spec.limit_s, is_abandoned):
        while num_in_flight < spec.num_in_flight:
            endpoint.post_write(0, spec.message_bytes)
            num_in_flight += 1
        for completion in endpoint.poll():
            if completion.status != SUCCESS:
                return TrialResult(status=completion.status, num_completed=num_completed, after_ns=now_ns - last_ns)
            num_in_flight -= 1
            num_completed += 1
            if now_ns - last_ns > longest_ns:
                longest_ns, resumed_ns = now_ns - last_ns, now_ns
            last_ns = now_ns
        if longest_ns > spec.stall_s * NS_PER_S and now_ns - resumed_ns > TAIL_NS:
            return TrialResult(status=SUCCESS, num_completed=num_completed, after_ns=longest_ns)
    longest_ns = max(longest_ns, time.monotonic_ns() - last_ns)
    return TrialResult(status=None, num_completed=num_completed, after_ns=longest_ns)
