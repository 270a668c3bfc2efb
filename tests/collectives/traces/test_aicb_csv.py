"""AICB's tables: rows become the requests of each stage's ranks, and what does not fit together is named.

Columns and lines are those of aliyun/aicb, workload/physical; the numbers are small.
"""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.traces.aicb_csv import is_aicb_csv, read_aicb_csv
from fabrictune.collectives.traces.formats import read_trace
from fabrictune.foundation.errors import InputError, TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation

COLUMNS = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count"


def row(kind: str, group: str, size: int | None, num_bytes: int | str, additional: str = "", time: str = "None") -> str:
    return f"CommType.{kind},CommGroup.{group},{size},{num_bytes},forward,None,None,{additional},{time},None,None,1"


def save(folder: Path, *lines: str) -> Path:
    path = folder / "workload.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def requests_of(trace: CommTrace, rank: int) -> list[tuple[str, int, tuple[int, ...], int]]:
    return [
        (
            Operation(trace.operation_N[number]).name,
            int(trace.bytes_N[number]),
            trace.groups[trace.group_N[number]],
            int(trace.peer_N[number]),
        )
        for number in (trace.rank_N == rank).nonzero()[0].tolist()
    ]


def test_one_list_is_that_of_all_ranks(tmp_path: Path) -> None:
    """Pairs of tensor ranks, four of data-parallel ones; each row waits for the one before, an epoch's end for none."""
    path = save(
        tmp_path,
        "[rank0 ~ rank7]",
        COLUMNS,
        row("all_gather", "dp_group", 4, 32),
        "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1",
        row("computation", "all", None, "((1 2) (2 3))", time="1500"),
        row("broadcast", "tp_group", 2, 24),
        row("barrier", "all", 8, 0),
    )
    assert is_aicb_csv(path)
    trace = read_trace([path])
    assert requests_of(trace, 5) == [
        ("ALL_GATHER", 32, (1, 3, 5, 7), UNKNOWN),
        ("BROADCAST", 24, (4, 5), 4),
        ("BARRIER", 0, tuple(range(8)), UNKNOWN),
    ]
    assert trace.compute_before_ps_N[:3].tolist() == [0, 1_500_000, 0]
    assert trace.notes == ()
    assert [trace.dependencies.of(number).tolist() for number in range(3)] == [[], [0], [1]]
    assert requests_of(read_trace([path], num_ranks=4), 3)[0][2] == (1, 3)


def test_each_stage_has_a_list_of_its_own(tmp_path: Path) -> None:
    """Two stages of two ranks; the last has no next stage, so that its send there is skipped, as AICB does."""
    path = save(
        tmp_path,
        "[ pp_stage0: [rank0, rank1] ]",
        COLUMNS,
        row("isend", "pp_group", 1, 100, "send_next"),
        row("irecv", "pp_group", 1, 50, "recv_next"),
        row("all_reduce", "embedding_group", 2, 8),
        "[ pp_stage1: [rank2, rank3] ]",
        COLUMNS,
        row("irecv", "pp_group", 1, 100, "recv_prev"),
        row("isend", "pp_group", 1, 100, "send_next"),
        row("isend", "pp_group", 1, 50, "send_prev"),
        row("all_reduce", "embedding_group", 2, 8),
    )
    trace = read_aicb_csv(path)
    assert requests_of(trace, 1) == [
        ("SEND", 100, (1, 3), 3),
        ("RECEIVE", 50, (1, 3), 3),
        ("ALL_REDUCE", 8, (1, 3), UNKNOWN),
    ]
    assert requests_of(trace, 3) == [
        ("RECEIVE", 100, (1, 3), 1),
        ("SEND", 50, (1, 3), 1),
        ("ALL_REDUCE", 8, (1, 3), UNKNOWN),
    ]


def test_computations_without_a_time_are_counted(tmp_path: Path) -> None:
    """AICB times them when it runs, and its workloads have their matrices alone."""
    work = row("computation", "all", None, "((1 2) (2 3))")
    path = save(tmp_path, COLUMNS, work, work, row("barrier", "all", 2, 0))
    trace = read_aicb_csv(path)
    assert trace.compute_before_ps_N.tolist() == [0, 0]
    assert trace.notes == (f"{path}: computations without a time, taken as 0: 2",)


def test_a_micro_benchmark_is_given_its_ranks(tmp_path: Path) -> None:
    """It has neither ranks nor sizes of groups; where it has sizes, they are enough."""
    columns = COLUMNS.replace("comm_group_size,", "")
    path = save(tmp_path, columns, "CommType.all_to_all,CommGroup.dp_group,4096,warmup,None,None,,None,None,None,1")
    with pytest.raises(TraceError, match=r"does not say how many ranks there are\n  next: give --ranks N"):
        read_aicb_csv(path)
    assert requests_of(read_aicb_csv(path, num_ranks=3), 2) == [("ALL_TO_ALL", 4096, (0, 1, 2), UNKNOWN)]
    path = save(tmp_path, COLUMNS, row("all_reduce", "dp_group", 4, 8), row("all_reduce", "pp_group", 1, 8))
    assert requests_of(read_aicb_csv(path), 3) == [
        ("ALL_REDUCE", 8, (0, 1, 2, 3), UNKNOWN),
        ("ALL_REDUCE", 8, (3,), UNKNOWN),
    ]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([COLUMNS, row("gossip", "dp_group", 4, 8)], "2, comm_type: 'gossip'"),
        ([COLUMNS, row("all_reduce", "my_group", 4, 8)], "2, comm_group: 'my_group'"),
        ([COLUMNS, row("all_reduce", "dp_group", 4, "x")], "2, msg_size: 'x'"),
        ([COLUMNS, row("isend", "pp_group", 1, 8)], "2, additional: ''"),
        ([COLUMNS, row("all_reduce", "tp_group", 2, 8), row("all_reduce", "tp_group", 4, 8)], "3: a tp group of 4"),
        (["[rank0 ~ rank7]", COLUMNS, row("all_reduce", "dp_group", 4, 8)], "3: a dp group of 4 ranks\n  allowed: 8"),
        (["[rank0 ~ rank7]", row("all_reduce", "dp_group", 8, 8)], "2: 'CommType.all_reduce"),
        (["[rank8 ~ rank1]", COLUMNS], "1: '[rank8 ~ rank1]'"),
        (["[ pp_stage0: [rank0, rank2] ]", COLUMNS], "1: '[ pp_stage0"),
        (["[rank0 ~ rank1048576]", COLUMNS, row("barrier", "all", None, 0)], "1,048,577 ranks\n  allowed: 1,048,576"),
        (["[rank4 ~ rank7]", COLUMNS, row("all_reduce", "dp_group", 4, 8)], "1: ranks that are no such stage"),
        (["comm_type,comm_group,stage", "x"], "1: no column msg_size"),
        ([COLUMNS], "no operation"),
    ],
)
def test_what_cannot_be_used_is_named(lines: list[str], found: str, tmp_path: Path) -> None:
    """With the line, and what would have been right."""
    with pytest.raises(TraceError) as caught:
        read_aicb_csv(save(tmp_path, *lines))
    assert found in str(caught.value)


def test_more_requests_than_can_be_used_are_refused(tmp_path: Path) -> None:
    """2**20 ranks with three rows each."""
    lines = [f"[rank0 ~ rank{2**20 - 1}]", COLUMNS, *[row("all_reduce", "dp_group", None, 8)] * 3]
    with pytest.raises(TraceError, match=r"up to 3,145,728 requests of 1048576 ranks"):
        read_aicb_csv(save(tmp_path, *lines))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(data=st.data())
def test_damage_is_a_trace_or_a_named_error(data: st.DataObject, tmp_path: Path) -> None:
    """Characters changed, cut off and put in: never another exception."""
    path = save(
        tmp_path,
        "[ pp_stage0: [rank0, rank1] ]",
        COLUMNS,
        row("isend", "pp_group", 1, 100, "send_next"),
        row("all_reduce", "embedding_group", 2, 8),
        "[ pp_stage1: [rank2, rank3] ]",
        COLUMNS,
        row("computation", "all", None, "((1 2) (2 3))", time="1500"),
        row("all_gather", "ep_group", 2, 8),
    )
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.text('0123456789,"\n[]_ ~', max_size=4)
        ).encode()
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(TraceError, InputError):
        read_aicb_csv(path, num_ranks=data.draw(st.sampled_from([None, 1, 4, 8])))
