"""A run of nccl-tests against itself: ranks, columns, average."""

import math
from pathlib import Path

import pytest

from fabrictune.collectives.nccl.tests_checks import (
    RankRange,
    allowed_ranks,
    average_contradictions,
    bandwidth_contradictions,
    notes_on,
    rank_count,
)
from fabrictune.collectives.nccl.tests_output import TestOutput
from fabrictune.collectives.nccl.tests_text import read_test_text
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.traces import Operation

ALL_REDUCE = Operation.ALL_REDUCE


def rank(number: int, *, group: int = 0) -> str:
    return f"#  Rank  {number} Group  {group} Pid  1 on node-{number // 8} device  0 [0x00] H100"


def row(size: int, time_us: float, num_ranks: int) -> str:
    """Return a row as nccl-tests prints it, of an all-reduce."""
    algorithm = size / time_us / 1e3
    bus = algorithm * 2 * (num_ranks - 1) / num_ranks
    return f"  {size}  {size // 4}  float  sum  -1  {time_us:.2f}  {algorithm:.2f}  {bus:.2f}  0  N/A  N/A  N/A  N/A"


def run(tmp_path: Path, *lines: str) -> TestOutput:
    path = tmp_path / "run.txt"
    path.write_text("\n".join(lines) + "\n")
    (found,) = read_test_text([path])
    return found


def test_one_missing_line_of_sixteen_is_a_finding_and_not_fifteen_ranks(tmp_path: Path) -> None:
    """190 GB/s times 30/16: only 16 ranks print that."""
    ranks = [rank(number) for number in range(16) if number != 7]
    num_ranks, finding = rank_count(run(tmp_path, *ranks, row(2**30, 5651.0, 16)), ALL_REDUCE)
    assert num_ranks == 16
    assert finding is not None
    assert (finding.id, finding.entity, finding.actual, finding.expected) == (
        *("coll.missing-ranks", "run of 16 ranks", "15 listed, without 7"),
        "all 16; busbw over algbw is that of 16 ranks",
    )


def test_an_abridged_list_is_no_small_run(tmp_path: Path) -> None:
    """Four of 32 listed, without a gap: 95.27 GB/s times 62/32 is 184.58, and 4 ranks would print 142.9."""
    output = run(tmp_path, *map(rank, range(4)), row(2**34, 180_326.0, 32))
    assert allowed_ranks(output, ALL_REDUCE) == RankRange(least=32, most=32)
    num_ranks, finding = rank_count(output, ALL_REDUCE)
    assert (num_ranks, finding.actual if finding else "") == (32, "4 listed")


def test_where_the_columns_cannot_tell_gaps_count_by_the_highest_rank(tmp_path: Path) -> None:
    """At 2.5 GB/s hundredths leave 15 or 16 ranks; the highest listed is 15."""
    ranks = [rank(number) for number in range(16) if number not in (3, 4)]
    num_ranks, finding = rank_count(run(tmp_path, *ranks, row(2**20, 420.0, 16)), ALL_REDUCE)
    assert (num_ranks, finding.actual if finding else "") == (16, "14 listed, without 3, 4")


def test_a_list_that_contradicts_the_columns_is_refused_where_they_allow_several(tmp_path: Path) -> None:
    """Four listed, and at 2.5 GB/s it is 15 or 16."""
    with pytest.raises(InputError) as raised:
        rank_count(run(tmp_path, *map(rank, range(4)), row(2**20, 420.0, 16)), ALL_REDUCE)
    assert str(raised.value) == (
        f"{tmp_path}/run.txt:5: 4 ranks listed, where busbw over algbw is that of 15 to 16 ranks\n"
        "  next: say it with --num-ranks"
    )


def test_a_sound_list_is_taken(tmp_path: Path) -> None:
    """Also over several groups, and where an operation's columns say nothing of the ranks."""
    assert rank_count(run(tmp_path, *map(rank, range(16)), row(2**30, 5651.0, 16)), ALL_REDUCE) == (16, None)
    groups = [rank(number, group=number % 2) for number in range(16)]
    assert rank_count(run(tmp_path, *groups, row(2**30, 5651.0, 8)), ALL_REDUCE) == (8, None)
    broadcast = run(tmp_path, *map(rank, range(4)), row(2**30, 5651.0, 2))
    assert allowed_ranks(broadcast, Operation.BROADCAST) == RankRange(least=2, most=math.inf)
    assert rank_count(broadcast, Operation.BROADCAST) == (4, None)


def test_rows_without_a_gigabyte_a_second_tell_nothing(tmp_path: Path) -> None:
    """0.03 GB/s times 1.5 is 0.05 or 0.04."""
    assert rank_count(run(tmp_path, *map(rank, range(4)), row(1024, 30.0, 4)), ALL_REDUCE) == (4, None)


def test_a_column_that_contradicts_its_row_is_a_finding(tmp_path: Path) -> None:
    """The second time says 10 GB/s where the column says 15 times 1.5: the file was edited, or cut and joined."""
    wrong = row(2**20, 69.9, 4).replace("69.90", "104.86")
    (finding,) = bandwidth_contradictions(run(tmp_path, row(2**20, 104.86, 4), wrong), ALL_REDUCE, 4)
    assert finding.entity == "1 of 2 timings of all_reduce by 4 ranks"
    assert (finding.actual, finding.expected) == (
        "busbw 22.50 GB/s for 1048576 B",
        "15.00 GB/s by size, time and ranks",
    )
    assert finding.evidence == (f"{tmp_path}/run.txt:2",)
    assert not list(bandwidth_contradictions(run(tmp_path, row(2**20, 104.86, 4)), ALL_REDUCE, 4))


def test_an_average_that_is_not_that_of_the_rows_is_a_finding(tmp_path: Path) -> None:
    """15 and 30 GB/s are 22.5; a row that was cut out leaves 15. Rows of 0 B count with 0 GB/s."""
    rows = [row(2**20, 104.86, 4), row(2**20, 52.43, 4)]
    average = "# Avg bus bandwidth    : 22.5"
    assert not list(average_contradictions(run(tmp_path, *rows, average)))
    (finding,) = average_contradictions(run(tmp_path, rows[0], average))
    assert (finding.actual, finding.expected) == (
        "average 22.5000 GB/s printed",
        "15.0000 GB/s, the mean of the rows in the file",
    )
    empty = "  0  0  float  sum  -1  5.00  0.00  0.00  0  N/A  N/A  N/A  N/A"
    assert not list(average_contradictions(run(tmp_path, empty, *rows, "# Avg bus bandwidth    : 15")))


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    """Empty sizes, rows without a time, lines that are cut; and that there is no average."""
    lines = [
        "  0  0  float  sum  -1  5.00  0.00  0.00  0  N/A  N/A  N/A  N/A",
        "  8  2  float  sum  -1  nan  nan  nan  0  N/A  N/A  N/A  N/A",
        "  16  4  float  sum  -1  5.00",
        row(2**20, 104.86, 4),
    ]
    assert list(notes_on(run(tmp_path, *lines))) == [
        "rows of 0 B, which have no bandwidth, left out: 1 of 3",
        "rows without a time, left out: 1 of 3",
        "lines that begin like a row and are not read: 1",
        "no average at the end: the run did not end, or the file is cut",
    ]
