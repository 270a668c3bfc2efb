"""Traces scaled along dp: the trainer's and the planner's traces of a larger job follow from those of a smaller one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.collectives.scaled_traces import scale_trace
from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace, Operation


def requests_of(trace: CommTrace) -> list[tuple[Any, ...]]:
    """Return each rank's requests, without the work between them: what is asked of whom, after what."""
    order = np.argsort(trace.rank_N, kind="stable")
    place = np.argsort(order, kind="stable")
    return [
        (
            int(trace.rank_N[row]),
            Operation(trace.operation_N[row]),
            trace.groups[trace.group_N[row]],
            int(trace.peer_N[row]),
            int(trace.bytes_N[row]),
            int(trace.step_N[row]),
            trace.axis_N[row],
            trace.tag_N[row],
            sorted(place[trace.dependencies.of(row)].tolist()),
        )
        for row in order.tolist()
    ]


def planned(layout: ParallelLayout, *changes: tuple[str, Any]) -> CommTrace:
    """Return the trace of all ranks of the tiny recipe in a layout."""
    pytest.importorskip("torch")
    from fabrictune.trainer_probe.planning.hardware import HardwareSpec
    from fabrictune.trainer_probe.planning.plan import make_plan
    from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

    degrees = {f"degrees.layout.{axis}": getattr(layout, axis) for axis in ("tp", "dp", "pp", "ep")}
    recipe = load_recipe(find_recipe("tiny"), {**degrees, **dict(changes)})
    return make_plan(recipe, HardwareSpec()).trace.written_out()


def test_the_trainer_requests_the_same_on_four_replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of the tiny recipe, of two ranks and of four: the first, scaled, is the second, but for the work."""
    pytest.importorskip("torch")
    from fabrictune.cli.main import run

    monkeypatch.chdir(tmp_path)
    layout = ["--set", "degrees.layout.tp=1", "--set", "degrees.layout.pp=1", "--set", "degrees.virtual=1"]
    for dp in (2, 4):
        settings = [*layout, "--set", f"degrees.layout.dp={dp}", "--set", "num_steps=2"]
        assert run(["train", "run", "tiny", *settings, "--out", f"dp{dp}", "--quiet"]) == 0
    two, four = (CommTrace.read(tmp_path / f"dp{dp}" / "comm_trace.parquet") for dp in (2, 4))
    scaled = scale_trace(two, ParallelLayout(dp=2), ParallelLayout(dp=4))
    assert requests_of(scaled) == requests_of(four)
    assert (scaled.issue_ps_N < 0).all()


@pytest.mark.parametrize("strategy", ["ddp", "zero1", "zero3"])
def test_a_plan_over_all_axes_is_the_same(strategy: str) -> None:
    """Tensor and pipeline groups are repeated with their replicas, and groups along dp grow."""
    traced, layout = (ParallelLayout(tp=2, dp=dp, pp=2) for dp in (2, 4))
    change = ("data_parallel.strategy", strategy)
    assert requests_of(scale_trace(planned(traced, change), traced, layout)) == requests_of(planned(layout, change))


def test_experts_keep_their_degree() -> None:
    """Of dp 4 with ep 2, pairs of ranks divide the experts; at dp 8 there are twice as many pairs."""
    traced, layout = (ParallelLayout(tp=1, dp=dp, pp=1, ep=2) for dp in (4, 8))
    changes = (("model", {"preset": "moe-tiny"}), ("degrees.virtual", 1))
    assert requests_of(scale_trace(planned(traced, *changes), traced, layout)) == requests_of(planned(layout, *changes))


def rows_of(group: Sequence[int], operation: Operation, *, peers: Sequence[int] = ()) -> list[TraceRow]:
    """Return a request of each member of a group."""
    return [
        TraceRow(rank=rank, operation=operation, group=tuple(group), num_bytes=8, peer=peer)
        for rank, peer in zip(group, peers or [-1] * len(group), strict=True)
    ]


def test_the_root_of_a_broadcast_among_replicas_stays() -> None:
    """Rank 1 sends to all, however many there are."""
    trace = build_trace(rows_of((0, 1), Operation.BROADCAST, peers=(1, 1)))
    scaled = scale_trace(trace, ParallelLayout(dp=2), ParallelLayout(dp=3))
    assert scaled.groups == ((0, 1, 2),)
    assert scaled.peer_N.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        (
            (ParallelLayout(dp=2), ParallelLayout(tp=2, dp=2)),
            "layout: tp 2, dp 2, pp 1, of a trace of tp 1, dp 2, pp 1",
        ),
        ((ParallelLayout(dp=2), ParallelLayout()), "layout: tp 1, dp 1, pp 1, of a trace of tp 1, dp 2, pp 1"),
        (
            (ParallelLayout(tp=2), ParallelLayout(tp=2, dp=2)),
            "traced_layout: tp 2, dp 1, pp 1: one replica, which requests nothing",
        ),
    ],
    ids=["tp", "fewer", "one-replica"],
)
def test_other_axes_are_refused(layouts: tuple[ParallelLayout, ParallelLayout], message: str) -> None:
    """They would change the work of a rank, of which the trace says nothing."""
    trace = build_trace(rows_of((0, 1), Operation.ALL_REDUCE))
    with pytest.raises(InputError, match=message):
        scale_trace(trace, *layouts)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (rows_of((0, 1), Operation.ALL_TO_ALL), "row 0: an all-to-all among all replicas"),
        (
            [
                TraceRow(rank=0, operation=Operation.SEND, group=(0, 1), num_bytes=8, peer=1),
                TraceRow(rank=1, operation=Operation.RECEIVE, group=(0, 1), num_bytes=8, peer=0),
            ],
            "row 0: a message from one replica to another",
        ),
        (rows_of((0, 1), Operation.BROADCAST, peers=(7, 7)), "row 0: rank 7 as a peer"),
        (rows_of((1, 0), Operation.ALL_REDUCE), "group 0 of ranks 1, 0, which are no whole groups"),
    ],
    ids=["all-to-all", "message", "peer", "order"],
)
def test_requests_that_do_not_follow_are_refused(rows: list[TraceRow], message: str) -> None:
    """What a new replica would send or receive is in none of these."""
    with pytest.raises(InputError, match=message):
        scale_trace(build_trace(rows), ParallelLayout(dp=2), ParallelLayout(dp=4))
