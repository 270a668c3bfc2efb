"""Templates and instances: every rank has its own groups and peers, and what is added up is what there was."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.tables import read_metadata
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation

LAYOUT = ParallelLayout(tp=2, dp=3, pp=2)  # rank = tp + 2 * dp + 6 * pp
OTHER_ORDER = ParallelLayout(tp=2, dp=3, pp=2, order=("pp", "tp", "dp"))  # rank = pp + 2 * tp + 4 * dp


def make_template(layout: ParallelLayout, place: int) -> CommTrace:
    """A gathering over tp, twice, work of the rank's own, a sum over dp, and a message from place 0 to place 1."""
    rank = layout.rank(tp=0, dp=0, pp=place)
    axes: tuple[Axis, ...] = ("tp", "dp", "pp")
    groups = (*(tuple(layout.group_of(axis, rank)) for axis in axes), (rank,))
    is_sender = place == 0
    return CommTrace(
        groups=groups,
        rank_N=np.full(5, rank),
        operation_N=np.array(
            [
                Operation.ALL_GATHER,
                Operation.ALL_GATHER,
                Operation.BARRIER,
                Operation.REDUCE_SCATTER,
                Operation.SEND if is_sender else Operation.RECEIVE,
            ]
        ),
        group_N=np.array([0, 0, 3, 1, 2]),
        peer_N=np.array([*[UNKNOWN] * 4, layout.rank(tp=0, dp=0, pp=1 - place)]),
        bytes_N=np.array([100, 50, 0, 300, 7]),
        compute_before_ps_N=np.array([1, 2, 3, 4, 5]) + 10 * place,
        step_N=np.zeros(5, np.int64),
        axis_N=("tp", "tp", "work", "dp", "pp"),
        policy_N=("all",) * 5,
        tag_N=("first", "second", "work", "sum", "message"),
        dependencies=Dependencies.from_lists([[], [0], [0], [1, 2], [3]]),
    )


def make_job(layout: ParallelLayout = LAYOUT) -> JobTrace:
    return JobTrace.of_places(layout, [make_template(layout, place) for place in range(2)])


@pytest.mark.parametrize("layout", [LAYOUT, OTHER_ORDER], ids=["tp-first", "pp-first"])
def test_an_instance_has_its_own_groups_and_peers(layout: ParallelLayout) -> None:
    """Rank (tp 1, dp 2, pp 0) sends to (tp 1, dp 2, pp 1), whatever numbers they have."""
    rank, above = layout.rank(tp=1, dp=2, pp=0), layout.rank(tp=1, dp=2, pp=1)
    rows = make_job(layout).of_rank(rank)
    expected = [*(tuple(layout.group_of(axis, rank)) for axis in ("tp", "tp")), (rank,)]
    expected += [tuple(layout.group_of("dp", rank)), tuple(layout.group_of("pp", rank))]
    assert [rows.groups[group] for group in rows.group_N] == expected
    assert rows.peer_N.tolist() == [UNKNOWN] * 4 + [above]
    assert set(rows.rank_N.tolist()) == {rank}
    assert rows.compute_before_ps_N.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("layout", [LAYOUT, OTHER_ORDER], ids=["tp-first", "pp-first"])
def test_written_out_are_all_ranks_one_after_another(layout: ParallelLayout) -> None:
    """Twelve ranks of five rows; what a row waits for are rows of its own rank."""
    job = make_job(layout)
    rows = job.written_out()
    assert len(rows) == job.num_requests == 60
    for rank in range(12):
        alone = job.of_rank(rank)
        own = slice(5 * rank, 5 * rank + 5)
        assert rows.groups == alone.groups
        for name in ("rank_N", "group_N", "peer_N", "bytes_N", "operation_N", "compute_before_ps_N", "tag_N"):
            assert list(getattr(rows, name)[own]) == list(getattr(alone, name)), name
        waits = [(rows.dependencies.of(5 * rank + row) - 5 * rank).tolist() for row in range(5)]
        assert waits == [[], [0], [0], [1, 2], [3]]


def make_ring(layout: ParallelLayout) -> JobTrace:
    """A message to the next rank along cp, one from the rank before, and a broadcast of the last rank along dp_cp."""
    ring, replicas = tuple(layout.group_of("cp", 0)), tuple(layout.group_of("dp_cp", 0))
    rows = CommTrace(
        groups=(ring, replicas),
        rank_N=np.zeros(3, np.int64),
        operation_N=np.array([Operation.SEND, Operation.RECEIVE, Operation.BROADCAST]),
        group_N=np.array([0, 0, 1]),
        peer_N=np.array([ring[1], ring[-1], replicas[-1]]),
        bytes_N=np.full(3, 8),
        compute_before_ps_N=np.zeros(3, np.int64),
        step_N=np.zeros(3, np.int64),
        axis_N=("cp", "cp", "dp_cp"),
        policy_N=("all",) * 3,
        tag_N=("to", "from", "values"),
        dependencies=Dependencies.none(3),
    )
    return JobTrace(layout=layout, templates=rows)


def test_every_rank_of_a_ring_sends_to_its_own_next() -> None:
    """cp 3 behind tp 2: rank 4 = (tp 0, cp 2) sends round to 0 and receives from 2; the root is the same for all."""
    layout = ParallelLayout(tp=2, cp=3, dp=2)
    job = make_ring(layout)
    assert job.of_rank(4).peer_N.tolist() == [0, 2, 10]
    assert job.of_rank(9).peer_N.tolist() == [11, 7, 11]
    pairs = [(send[0], send[1]) for send in _messages(job, Operation.SEND)]
    assert sorted(pairs) == sorted((receive[1], receive[0]) for receive in _messages(job, Operation.RECEIVE))


def _messages(job: JobTrace, operation: Operation) -> list[tuple[int, int]]:
    rows = job.written_out()
    chosen = rows.operation_N == operation
    return list(zip(rows.rank_N[chosen].tolist(), rows.peer_N[chosen].tolist(), strict=True))


@pytest.mark.parametrize("layout", [ParallelLayout(tp=2, cp=3, dp=2), ParallelLayout(cp=2, dp=4, ep=2)])
def test_a_file_has_the_later_degrees_where_they_are_used(layout: ParallelLayout, tmp_path: Path) -> None:
    """And none of them where they are 1, so that such files are those of before."""
    path = tmp_path / "job.parquet"
    make_ring(layout).write(path)
    assert JobTrace.read(path).layout == layout
    make_job().write(path)
    assert json.loads(read_metadata(path, error=TraceError)["layout"]) == {
        "tp": 2,
        "dp": 3,
        "pp": 2,
        "order": ["tp", "dp", "pp"],
    }


def test_what_is_added_up_has_the_bytes_of_each_group_and_peer() -> None:
    """The two gatherings become one of 150 bytes; work moves nothing and goes."""
    added = make_job().added_up()
    assert added.templates.bytes_N.tolist() == [150, 300, 7] * 2
    assert added.templates.operation_N.tolist() == [2, 1, 5, 2, 1, 6]
    assert not added.templates.compute_before_ps_N.any()
    assert added.written_out().bytes_N.sum() == make_job().written_out().bytes_N.sum()


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    """Layout and rows; and it isn't taken for the requests of all ranks."""
    path = tmp_path / "job.parquet"
    make_job(OTHER_ORDER).write(path)
    found = JobTrace.read(path)
    assert found.layout == OTHER_ORDER
    assert found.of_rank(7).tag_N == make_job(OTHER_ORDER).of_rank(7).tag_N
    with pytest.raises(TraceError, match=re.escape("a JobTrace, where a CommTrace is needed")):
        CommTrace.read(path)


def test_a_job_too_large_to_write_out_is_refused() -> None:
    """A million ranks of five rows."""
    layout = replace(LAYOUT, dp=2**18)
    job = JobTrace.of_places(layout, [make_template(layout, place) for place in range(2)])
    with pytest.raises(TraceError, match="5,242,880 requests of 1,048,576 ranks"):
        job.written_out()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axis_N": ("cp",) * 10}, "axis 'cp'"),
        ({"axis_N": ("dp",) * 10}, "rank 0 in a group of dp of other ranks than the layout's"),
        ({"peer_N": np.array([*[UNKNOWN] * 4, 5] * 2)}, "rank 0 with peer 5 along pp"),
        ({"dependencies": Dependencies.from_lists([[9], *[[]] * 9])}, "a row that waits for another rank's"),
    ],
)
def test_templates_that_do_not_fit_the_layout_are_refused(change: dict[str, object], message: str) -> None:
    """What a foreign or damaged file could hold."""
    with pytest.raises(TraceError, match=message):
        JobTrace(layout=LAYOUT, templates=replace(make_job().templates, **change))  # type: ignore[arg-type]


def test_places_in_another_order_are_refused() -> None:
    """Or an instance would find another place's rows."""
    with pytest.raises(TraceError, match="ranks that are not the first of their pipeline places, in order"):
        JobTrace.of_places(LAYOUT, [make_template(LAYOUT, place) for place in (1, 0)])


def test_a_file_without_layout_is_refused(tmp_path: Path) -> None:
    """Its rows alone don't say how many ranks there are."""
    path = tmp_path / "job.parquet"
    make_job().templates.write(path, kind="JobTrace", layout='{"tp": 2}')
    with pytest.raises(TraceError, match="no layout in the file's metadata"):
        JobTrace.read(path)
