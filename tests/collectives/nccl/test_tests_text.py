"""The table of nccl-tests in its layouts, with log lines between its rows."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.nccl import tests_text
from fabrictune.collectives.nccl.tests_output import Spread, TestOutput, TestRow, Timing
from fabrictune.collectives.nccl.tests_text import read_test_text
from fabrictune.foundation.errors import InputError

LOG_LINE = "node1:17:18 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[2] via P2P/direct pointer"


def read(tmp_path: Path, *lines: str) -> TestOutput:
    path = tmp_path / "all_reduce.txt"
    path.write_text("\n".join(lines) + "\n")
    (found,) = read_test_text([path])
    return found


def timing(duration_us: float, algorithm: float, bus: float, wrong: float | None) -> Timing:
    """Return a timing from nccl-tests' own units: 1 GB/s is 8 Gbit/s."""
    return Timing(
        duration_ns=duration_us * 1000,
        algorithm_bandwidth_bps=algorithm * 8e9,
        bus_bandwidth_bps=bus * 8e9,
        num_wrong=wrong,
    )


def row(where: Path, **changes: object) -> TestRow:
    values: dict[str, object] = {
        "size_bytes": 1048576,
        "num_elements": 262144,
        "type": "float",
        "reduction": "sum",
        "root": -1,
        "out_of_place": timing(74.78, 14.02, 24.54, 0.0),
        "in_place": timing(76.17, 13.77, 24.09, None),
        "where": f"{where}:1",
    }
    return TestRow(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("  1048576  262144  float  sum  -1  74.78  14.02  24.54  0  76.17  13.77  24.09  N/A", {}),
        ("  1048576  262144  float  sum  74.78  14.02  24.54  0e+00  76.17  13.77  24.09  N/A", {"root": None}),
        (
            "  1048576  262144  float  none  0  74.78  14.02  24.54  0  76.17  13.77  24.09  N/A",
            {"reduction": "", "root": 0},
        ),
        ("  1048576  262144  float  74.78  14.02  24.54  0  76.17  13.77  24.09  N/A", {"reduction": "", "root": None}),
        ("  1048576  262144  float  sum  -1  74.78  14.02  24.54  0  N/A  N/A  N/A  N/A", {"in_place": None}),
        ("  1048576  262144  float  sum  -1  74.78  14.02  24.54  0", {"in_place": None}),
        ("  1048576  262144  float  sum  -1  nan  inf  -nan  0  76.17  13.77  24.09  N/A", {"out_of_place": None}),
        ("[1,0]<stdout>:  1048576  262144  float  sum  -1  74.78 14.02 24.54  0  76.17  13.77  24.09  N/A", {}),
        ("0:   1048576  262144  float  sum  -1  74.78 14.02 24.54  0  76.17  13.77  24.09  N/A", {}),
        ("  1048576  262144  float  sum  -1  74.78 14.02 24.54  0  76.17 13.77 24.09  N/A  2026-11-21 07:39:24", {}),
    ],
)
def test_a_row_is_read_in_every_layout(tmp_path: Path, line: str, changes: dict[str, object]) -> None:
    """New, old, without reduction, without root, and with one of the two runs alone."""
    (found,) = read(tmp_path, line).rows
    assert found == row(tmp_path / "all_reduce.txt", **changes)


def test_log_lines_between_and_behind_rows_are_passed_over(tmp_path: Path) -> None:
    """NCCL writes to the same terminal, sometimes into the same line."""
    line = "  1048576  262144  float  sum  -1  74.78  14.02  24.54  0  76.17  13.77  24.09  N/A"
    output = read(
        tmp_path,
        line,
        LOG_LINE,
        f"{line} {LOG_LINE}",
        "# Out of bounds values : 2 FAILED",
        "# Avg bus bandwidth    : 5.80752 ",
    )
    assert [found.where.rpartition(":")[2] for found in output.rows] == ["1", "3"]
    assert output.num_out_of_bounds == 2
    assert output.average_bus_bandwidth_bps == pytest.approx(5.80752 * 8e9)


def test_a_run_that_was_broken_off_has_no_average(tmp_path: Path) -> None:
    """What was printed before counts."""
    output = read(tmp_path, "  1024  256  float  sum  -1  7.78  0.13  0.24  0  7.17  0.14  0.25  0")
    assert (output.average_bus_bandwidth_bps, output.num_out_of_bounds) == (None, None)


SPREAD_HEAD = "#  size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv%"


def test_a_spread_stands_behind_each_timing(tmp_path: Path) -> None:
    """Four more columns each; without the heading, eight numbers would be two timings."""
    numbers = "74.78  14.02  24.54  0  70.1  99.0  98.5  2.50"
    found = read(tmp_path, SPREAD_HEAD, f"  1048576  262144  float  sum  -1  {numbers}  {numbers}").rows[0]
    assert found.out_of_place == found.in_place
    assert found.in_place is not None
    assert found.in_place.spread == Spread(min_ns=70100, max_ns=99000, p99_ns=98500, variation_fraction=0.025)
    alone = read(tmp_path, SPREAD_HEAD, f"  1048576  262144  float  sum  -1  {numbers}").rows[0]
    assert alone.out_of_place == found.out_of_place
    assert alone.in_place is None


HEAD = (
    "# nccl-tests version 2.18.3 nccl-headers=23003 nccl-library=23003",
    "# Collective test starting: alltoall_perf",
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1",
    "# Using devices",
    "#  Rank  0 Group  0 Pid  12812 on node-a device  0 [0000:06:00] NVIDIA H100",
    "#  Rank  1 Group  0 Pid  12812 on node-b device  1 [0000:26:00] NVIDIA H100",
)
ROW = "  1024  256  float  none  -1  7.78  0.13  0.07  0  7.17  0.14  0.07  N/A"


def test_a_head_tells_program_ranks_and_hosts(tmp_path: Path) -> None:
    """Two ranks on two hosts; both heads of one run are one, though each could begin another."""
    output = read(tmp_path, *HEAD, ROW)
    assert (output.program, output.num_ranks, output.hosts) == ("alltoall_perf", 2, ("node-a", "node-b"))


def test_groups_run_by_themselves(tmp_path: Path) -> None:
    """NCCL_TESTS_SPLIT: four ranks in two groups are two ranks to an operation; in uneven groups nobody can tell."""
    ranks = [f"#  Rank  {rank} Group  {rank % 2} Pid  1 on node device  0 [0x00] A100" for rank in range(4)]
    assert read(tmp_path, *ranks, ROW).num_ranks == 2
    assert read(tmp_path, *ranks[:3], ROW).num_ranks == 0


def test_runs_behind_one_another_are_told_apart(tmp_path: Path) -> None:
    """A script that runs all programs into one file; a run that broke off before its first row is none."""
    path = tmp_path / "all.txt"
    again = [line.replace("alltoall", "all_gather") for line in HEAD]
    path.write_text("\n".join([*HEAD, ROW, "# Avg bus bandwidth : 0.07", *HEAD, *again, ROW, ROW]))
    first, second = read_test_text([path])
    assert (first.program, len(first.rows), first.average_bus_bandwidth_bps) == ("alltoall_perf", 1, 0.07 * 8e9)
    assert (second.program, len(second.rows), second.average_bus_bandwidth_bps) == ("all_gather_perf", 2, None)


def test_a_noted_command_line_names_the_program(tmp_path: Path) -> None:
    """Older runs do not, but a shell's `set -x` may have."""
    assert read(tmp_path, "+ mpirun -np 16 ./build/all_reduce_perf -b 8 -e 8G", ROW).program == "all_reduce_perf"
    assert read(tmp_path, ROW).program == ""


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    """A log alone is no output of nccl-tests."""
    with pytest.raises(InputError, match="no row of nccl-tests"):
        read(tmp_path, LOG_LINE)


def test_more_rows_than_runs_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """520,000 rows, a file of 50 MB, took 29 s and 1.6 GiB."""
    monkeypatch.setattr(tests_text, "MAX_ROWS", 1)
    with pytest.raises(InputError, match=r":2: more than 1 rows\n  next: import the runs of the file one by one$"):
        read(tmp_path, ROW, ROW)


@given(st.lists(st.sampled_from(["1048576", "float", "sum", "-1", "1.5", "N/A", "#", "x" * 50, "9" * 30]), max_size=15))
def test_any_words_are_a_row_or_none(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    """No traceback, and a row has a size."""
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("  ".join(words) + "\n")
    try:
        output = read_test_text([path])[0]
    except InputError:
        return
    assert output.rows[0].size_bytes == 1048576
