"""Storm experiment: every pattern at every size, one after another, each on a fresh server."""

import asyncio
import resource
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.operation_count import num_operations
from fabrictune.collectives.startup.servers import Server, require_redis_server, start_redis, start_tcp_store
from fabrictune.collectives.startup.storm.clients import Effort, connected, run_storm
from fabrictune.collectives.startup.storm.patterns import PATTERNS, Pattern, ServerKind, all_steps
from fabrictune.collectives.startup.storm.redis_wire import RedisWire
from fabrictune.collectives.startup.storm.tcp_store_wire import TcpStoreWire
from fabrictune.collectives.startup.storm.wires import StoreProtocol
from fabrictune.foundation.errors import InputError, Mistake, StartupError, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.progress import Progress

ATTEMPT = "storm"
EXPIRY_S = 3600
SPARE_FILES = 128  # of a process besides its connections


@dataclass(frozen=True, kw_only=True)
class StormSpec:
    """Cases of a storm. Tensor and pipeline degrees are kept, the data-parallel degree gives the size."""

    num_ranks: tuple[int, ...] = (256, 512, 1024)
    tp: int = 8
    pp: int = 8
    patterns: tuple[Pattern, ...] = PATTERNS
    timeout_s: float = 1800.0  # of one storm

    def __post_init__(self) -> None:
        part = self.tp * self.pp
        mistakes = [
            Mistake(
                where="num_ranks", found=f"{number} ranks", allowed=f"multiples of {part} (TP {self.tp}, PP {self.pp})"
            )
            for number in self.num_ranks
            if number < 2 or number % part
        ]
        if mistakes:
            raise InputError(*mistakes)

    def plan(self, num_ranks: int) -> GroupPlan:
        """Return the groups of a job of a size."""
        return GroupPlan.of_layout(ParallelLayout(tp=self.tp, dp=num_ranks // (self.tp * self.pp), pp=self.pp))


@dataclass(frozen=True, kw_only=True)
class StormResult:
    """One pattern at one size."""

    pattern: Pattern
    num_ranks: int
    num_groups: int
    num_operations: int  # in closed form; the least there can be where the pattern is not exact
    num_requests: int  # counted
    num_requests_expected: int  # in closed form, as above
    connect_s: float  # until the server had greeted all ranks
    wall_s: float  # from there until the last rank had ended
    server_cpu_s: float
    clients_cpu_s: float  # of the emulation, which is no part of what is measured


def run_storms(spec: StormSpec, progress: Progress | None = None) -> list[StormResult]:
    """Run all storms; `progress` receives the share done. Raises UnavailableError where a server cannot be started."""
    _require_servers({pattern.server for pattern in spec.patterns})
    _allow_connections(max(spec.num_ranks))
    cases = [(pattern, number, spec.plan(number)) for number in spec.num_ranks for pattern in spec.patterns]
    weights = [num_operations(pattern.operations(plan)) for pattern, _, plan in cases]
    results = []
    for number, (pattern, num_ranks, plan) in enumerate(cases):
        results.append(_run_storm(pattern, num_ranks, plan, spec.timeout_s))
        if progress:
            progress(sum(weights[: number + 1]) / sum(weights))
    return results


def _require_servers(kinds: Set[ServerKind]) -> None:
    """Raise UnavailableError now, and not after an hour of storms, where a server is missing."""
    if kinds - {"redis"}:
        require_extra("torch", extra="train", where="TCPStore")
    if "redis" in kinds:
        require_extra("redis", extra="redis", where="Redis")
        require_redis_server()


def _allow_connections(num_ranks: int) -> None:
    """Raise this process's limit of open files, which servers inherit; raises UnavailableError if that may not be."""
    needed = num_ranks + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UnavailableError(
            Mistake(
                where=f"{num_ranks} ranks",
                found=f"need {needed} open files, and this user may have {hard}",
                next_step="raise the limit (ulimit -Hn), or try fewer ranks",
            )
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _run_storm(pattern: Pattern, num_ranks: int, plan: GroupPlan, timeout_s: float) -> StormResult:
    with _started(pattern.server, timeout_s) as (server, wire):
        try:
            connect_s, effort, server_cpu_s = asyncio.run(_raise_storm(pattern, plan, server, wire, timeout_s))
        except OSError as error:  # TimeoutError is one
            is_late = isinstance(error, TimeoutError)
            raise StartupError(
                Mistake(
                    where=f"storm {pattern.name}, {num_ranks} ranks",
                    found=f"has not ended after {timeout_s:g} s" if is_late else f"was cut off ({error})",
                    next_step="give it longer, or try fewer ranks",
                )
            ) from error
    count = pattern.operations(plan)
    return StormResult(
        pattern=pattern,
        num_ranks=num_ranks,
        num_groups=len(plan.groups),
        num_operations=num_operations(count),
        num_requests=effort.num_requests,
        num_requests_expected=wire.num_requests(count),
        connect_s=connect_s,
        wall_s=effort.wall_s,
        server_cpu_s=server_cpu_s,
        clients_cpu_s=effort.cpu_s,
    )


async def _raise_storm(
    pattern: Pattern, plan: GroupPlan, server: Server, wire: StoreProtocol, timeout_s: float
) -> tuple[float, Effort, float]:
    """Return the time to connect, what the ranks did, and the server's processor time for it."""
    started_s = time.perf_counter()
    async with connected(server.address, wire, plan.world_size) as ranks:
        connect_s, before_s = time.perf_counter() - started_s, server.cpu_s()
        effort = await run_storm(ranks, all_steps(pattern, plan), timeout_s)
        return connect_s, effort, server.cpu_s() - before_s


@contextmanager
def _started(kind: ServerKind, timeout_s: float) -> Iterator[tuple[Server, StoreProtocol]]:
    if kind != "redis":
        with start_tcp_store(use_libuv=kind == "tcp-libuv") as server:
            yield server, TcpStoreWire(ATTEMPT)
        return
    from fabrictune.collectives.startup.redis_client import RedisClient

    with start_redis() as server:
        client = RedisClient(server.address, attempt=ATTEMPT, timeout_s=timeout_s, expiry_s=EXPIRY_S)
        client.connect()  # and make the scripts known
        client.close()
        yield (
            server,
            RedisWire(ATTEMPT, password=server.address.password or "", expiry_ms=EXPIRY_S * 1000, timeout_s=timeout_s),
        )
