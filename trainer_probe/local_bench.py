"""A bench of collectives between processes of this machine."""

from dataclasses import asdict
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from fabrictune.collectives.measurement.spec import BenchSpec
from fabrictune.collectives.measurement.timing import Notes
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.progress import Progress
from fabrictune.trainer_probe.launcher.processes import Arrays, launch
from fabrictune.trainer_probe.launcher.relay import relaying

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member


def bench_here(spec: BenchSpec, *, num_ranks: int, timeout_s: float, progress: Progress | None = None) -> Notes:
    """Run a bench with that many processes over gloo on the loopback; `progress` is told the share done.

    Raises UnavailableError where torch is missing, a rank fails, or not all have ended after `timeout_s`.
    """
    report = progress or (lambda fraction, note="", /: None)
    with relaying(report) as sender:
        found = launch(ParallelLayout(dp=num_ranks), partial(_bench, spec, sender), timeout_s=timeout_s)
    return Notes(**found[0])


def _bench(spec: BenchSpec, sender: "Connection[float, float]", member: "Member") -> Arrays:
    """Run in the rank's own process; rank 0 speaks for all."""
    from fabrictune.collectives.measurement.ranks import run_bench

    def report(fraction: float, _note: str = "", /) -> None:
        sender.send(fraction)

    notes = run_bench(spec, report if member.rank == 0 else None)
    return asdict(notes) if member.rank == 0 else {}
