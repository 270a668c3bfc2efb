"""A bench of collectives between processes of this machine."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from collectives.measuring.spec import BenchSpec
from collectives.measuring.timing import Notes
from collectives.startup.servers import QUICK_RESOLVER
from foundation.layout import ParallelLayout
from trainer_probe.launcher import Arrays, launch

if TYPE_CHECKING:
    from collectives.startup.process_groups import Member


def bench_here(
    spec: BenchSpec, *, num_ranks: int, timeout_s: float, progress: Callable[[float], None] | None = None
) -> Notes:
    """Run a bench with that many processes over gloo on the loopback; rank 0's process tells `progress` the share done.

    Raises UnavailableError where torch is missing, a rank fails, or not all have ended after `timeout_s`.
    """

    def target(member: "Member") -> Arrays:
        from collectives.measuring.ranks import run_bench

        notes = run_bench(spec, progress if member.rank == 0 else None)
        return asdict(notes) if member.rank == 0 else {}

    with set_where_unset(QUICK_RESOLVER):
        found = launch(ParallelLayout(dp=num_ranks), target, timeout_s=timeout_s)
    return Notes(**found[0])


@contextmanager
def set_where_unset(variables: Mapping[str, str]) -> Iterator[None]:
    """Set those variables of the environment that are not set, for as long as the block runs."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
