"""Trials between processes of this machine: a bench of collectives, and the start-up of a layout's groups."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import numpy as np

from fabrictune.collectives.measurement.spec import BenchSpec
from fabrictune.collectives.measurement.timing import TimingSamples
from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.stores import connect_store
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import Mistake, StartupError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.time_limits import scaled
from fabrictune.foundation.units import NS_PER_S
from fabrictune.trainer_probe.launcher.processes import Arrays, launch
from fabrictune.trainer_probe.launcher.relay import relay

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member, Method


SEED = 0  # nothing here is random
LAUNCH_S = 30.0  # for forking the ranks and for the sums


def bench_locally(
    spec: BenchSpec, *, num_ranks: int, timeout_s: float, progress: Progress | None = None
) -> TimingSamples:
    """Return the timings of a bench between `num_ranks` processes over gloo on the loopback device.

    Raises UnavailableError where torch is missing, a rank fails, or not all ranks end within `timeout_s`.
    """
    report: Progress = progress or (lambda fraction, note="", /: None)
    with relay(report) as sender:
        results = launch(ParallelLayout(dp=num_ranks), partial(_bench, spec, sender), timeout_s=timeout_s)
    return TimingSamples(**results[0])


@dataclass(frozen=True, kw_only=True)
class StartupTrial:
    """A start-up in which every group worked."""

    num_ranks: int
    num_groups: int
    elapsed_s_R: FloatArray  # R ranks; from a rank's first message to the store to its last group

    def record(self, layout: ParallelLayout, *, store: str, method: "Method", started: float) -> RunRecord:
        """Return a record of kind `coll init check`; `started` is `time.perf_counter` at the start."""
        configuration = {**asdict(layout), "store": store, "method": method, "num_groups": self.num_groups}
        elapsed_ns_R = np.rint(self.elapsed_s_R * NS_PER_S).astype(np.int64)
        return RunRecord(
            kind="coll init check",
            checks=(),
            run=describe_run(seed=SEED, started=started, configuration=configuration),
            tables={"startup": {"rank": np.arange(self.num_ranks), "elapsed_ns": elapsed_ns_R}},
        )


def try_startup(
    layout: ParallelLayout,
    *,
    store: StoreAddress | None = None,
    method: "Method" = "ordered",
    timeout_s: float = 120.0,
) -> StartupTrial:
    """Start a gloo process for each rank of a layout, and sum the rank numbers of every group.

    The ranks meet in `store`, or in a TCPStore served here. Raises UnavailableError where a rank fails, and
    StartupError where a group has other members than it should.
    """
    if store is not None:  # a store that does not answer is reported once, not by each rank
        connect_store(store, attempt="trial", timeout_s=timeout_s)
    plan = GroupPlan.of_layout(layout)
    results = launch(
        layout,
        _sum_ranks,
        store=store,
        method=method,
        startup_timeout_s=timeout_s,
        timeout_s=2 * timeout_s + scaled(LAUNCH_S),  # longer than the ranks' own timeouts, whose messages say more
    )
    mistakes = [mistake for rank, arrays in enumerate(results) for mistake in _wrong_sums(plan, rank, arrays["sum_G"])]
    if mistakes:
        raise StartupError(*mistakes)
    return StartupTrial(
        num_ranks=layout.world_size,
        num_groups=len(plan.groups),
        elapsed_s_R=np.array([arrays["elapsed_s"].item() for arrays in results]),
    )


def _bench(spec: BenchSpec, sender: "Connection[float, float]", member: "Member") -> Arrays:
    """Run the bench in a rank's own process; rank 0 reports progress and returns the timings."""
    from fabrictune.collectives.measurement.ranks import run_bench

    def report(fraction: float, _note: str = "", /) -> None:
        sender.send(fraction)

    notes = run_bench(spec, report if member.rank == 0 else None)
    return asdict(notes) if member.rank == 0 else {}


def _sum_ranks(member: "Member") -> dict[str, FloatArray]:
    """Return the sum of rank numbers over each group of this rank, in the plan's order."""
    import torch
    import torch.distributed as dist

    sums = []
    for group in member.plan.of_rank(member.rank):
        total = torch.tensor([float(member.rank)], dtype=torch.float64)
        dist.all_reduce(total, group=member.process_groups[group.name])
        sums.append(total.item())
    return {"sum_G": np.array(sums), "elapsed_s": np.array(member.elapsed_s)}


def _wrong_sums(plan: GroupPlan, rank: int, sum_G: FloatArray) -> Iterable[Mistake]:
    for group, total in zip(plan.of_rank(rank), sum_G.tolist(), strict=True):
        if total != sum(group.members):
            yield Mistake(
                where=f"rank {rank}, group {group.name}",
                found=f"rank numbers add up to {total:g}",
                allowed=f"{sum(group.members)}, of ranks {', '.join(map(str, group.members))}",
            )
