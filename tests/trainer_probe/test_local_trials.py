"""Trials between real processes: benches whose every result is checked, and start-ups over every store."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.collectives.measurement.record import make_bench_record
from fabrictune.collectives.measurement.spec import BENCHED, BenchSpec
from fabrictune.collectives.measurement.timing import TimingSamples
from fabrictune.collectives.startup.servers import start_redis, start_tcp_store
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.local_trials import bench_locally, try_startup
from tests.patience import patience

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member, Method


pytest.importorskip("torch")

SPEC = BenchSpec(names=tuple(BENCHED), min_bytes=4, max_bytes=70_000, step_factor=70, num_warmups=1, num_iterations=3)
LAYOUT = ParallelLayout(tp=2, dp=4, pp=2)


def bench(num_ranks: int) -> RunRecord:
    notes = bench_locally(SPEC, num_ranks=num_ranks, timeout_s=patience(120))
    return make_bench_record(SPEC, notes, backend="gloo", started=0.0)


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_every_operation_is_right(num_ranks: int) -> None:
    """Three sizes of six operations, of which an all-gather runs twice; three ranks have uneven parts."""
    record = bench(num_ranks)
    table = record.tables["measurements"]
    assert len(table["operation"]) == 3 * (len(BENCHED) + 1)
    assert not table["num_wrong"].any()
    assert (table["num_ranks"] == num_ranks).all()
    assert (table["mean_ns"] > 0).all()
    assert (table["p10_ns"] <= table["median_ns"]).all()
    assert (table["median_ns"] <= table["p99_ns"]).all()
    ratio = table["bus_bandwidth_bps"] / table["algorithm_bandwidth_bps"]
    assert ratio[table["operation"] == "all_reduce"] == pytest.approx(2 * (num_ranks - 1) / num_ranks)
    assert ratio[table["operation"] == "send_recv"] == pytest.approx(1)
    assert record.run["configuration"]["num_hosts"] == 1


def bench_greatest_for_sum(spec: BenchSpec, member: "Member") -> Mapping[str, NDArray[Any]]:
    """Take the greatest instead of the sum."""
    import torch.distributed as dist

    from fabrictune.collectives.measurement.ranks import run_bench

    dist.all_reduce = partial(dist.all_reduce, op=dist.ReduceOp.MAX)
    return asdict(run_bench(spec, None))


def test_a_wrong_result_is_counted_and_found() -> None:
    """Where one rank has 0, sum and greatest are the same; elsewhere they are not."""
    spec = BenchSpec(min_bytes=4096, max_bytes=4096, num_warmups=0, num_iterations=1)
    found = launch(ParallelLayout(dp=2), partial(bench_greatest_for_sum, spec))
    record = make_bench_record(spec, TimingSamples(**found[0]), backend="gloo", started=0.0)
    wrong = record.tables["measurements"]["num_wrong"].tolist()
    assert wrong[0] > 1000  # of 2 x 1,024 elements
    (finding,) = (finding for finding in record.findings if finding.id == "coll.wrong-result")
    assert finding.actual == f"{wrong[0]} wrong elements"


def work_after(call: Callable[..., Any], duration_ns: int, *arguments: Any) -> None:
    """Call a function, then keep this processor busy."""
    call(*arguments)
    until_ns = time.perf_counter_ns() + duration_ns
    while time.perf_counter_ns() < until_ns:
        pass


def bench_with_a_slow_rank(spec: BenchSpec, member: "Member") -> Mapping[str, NDArray[Any]]:
    """Let rank 1 have 50 ms of other work after every call."""
    import torch.distributed as dist

    from fabrictune.collectives.measurement.ranks import run_bench

    dist.all_reduce = partial(work_after, dist.all_reduce, 50_000_000 * (member.rank == 1))
    return asdict(run_bench(spec, None))


def test_a_slow_rank_is_found() -> None:
    """Three ranks, of which the second is late for every iteration but the first."""
    spec = BenchSpec(min_bytes=4096, max_bytes=4096, num_warmups=0, num_iterations=8)
    found = launch(ParallelLayout(dp=3), partial(bench_with_a_slow_rank, spec))
    record = make_bench_record(spec, TimingSamples(**found[0]), backend="gloo", started=0.0)
    (finding,) = record.findings
    assert (finding.id, finding.entity) == ("coll.straggler", "rank 1")
    ranks = record.tables["ranks"]
    assert ranks["late_ns"][ranks["rank"] == 1].min() > 20e6


def test_tables_agree_with_one_another() -> None:
    """As many rows as cases, iterations and ranks make, and every iteration has one who came last."""
    record = bench(2)
    cases = len(record.tables["measurements"]["operation"])
    assert len(record.tables["iterations"]["case"]) == cases * SPEC.num_iterations
    ranks = record.tables["ranks"]
    assert len(ranks["case"]) == cases * 2
    last = np.bincount(ranks["case"], weights=ranks["times_last"])
    assert (last == SPEC.num_iterations).all()


def test_only_what_has_a_bus_bandwidth_is_benched() -> None:
    """A barrier moves nothing."""
    assert Operation.BARRIER not in BENCHED.values()


@pytest.mark.parametrize("method", ["ordered", "global-barriers"])
@pytest.mark.parametrize("server", ["redis", "tcp", "tcp-poll"])
def test_sixteen_processes_make_the_groups_of_a_layout(
    server: str, method: "Method", request: pytest.FixtureRequest
) -> None:
    """8 + 4 groups, and 8 pipelines in each direction; every group adds up the numbers of its own members."""
    if server == "redis":
        request.getfixturevalue("has_redis")
    with start_redis() if server == "redis" else start_tcp_store(use_libuv=server == "tcp") as running:
        trial = try_startup(LAYOUT, store=running.address, method=method)
    assert (trial.num_ranks, trial.num_groups) == (16, 8 + 4 + 2 * 8)
    assert (trial.elapsed_s_R > 0).all()


def test_without_a_store_one_is_served_here() -> None:
    """The default needs no server: the launcher serves a TCPStore while its ranks run."""
    assert try_startup(ParallelLayout(dp=2)).num_groups == 1


def add_up_alone(member: "Member") -> dict[str, FloatArray]:
    return {"sum_G": np.array([0.0]), "elapsed_s": np.array(0.1)}


def test_a_group_with_other_members_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that added itself up alone: the sum it should have had is said."""
    monkeypatch.setattr("fabrictune.trainer_probe.local_trials._sum_ranks", add_up_alone)
    with pytest.raises(UnavailableError) as error:
        try_startup(ParallelLayout(dp=2))
    assert str(error.value).splitlines() == [
        "rank 0, group dp0: rank numbers add up to 0",
        "  allowed: 1, of ranks 0, 1",
        "rank 1, group dp0: rank numbers add up to 0",
        "  allowed: 1, of ranks 0, 1",
    ]
