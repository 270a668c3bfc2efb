"""The table of nccl-tests in its layouts, with log lines between its rows."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives.nccl.tests_output import TestOutput, TestRow, Timing, read_test_output
from foundation.errors import InputError

LOG_LINE = "node1:17:18 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[2] via P2P/direct pointer"


def read(tmp_path: Path, *lines: str) -> TestOutput:
    path = tmp_path / "all_reduce.txt"
    path.write_text("\n".join(lines) + "\n")
    return read_test_output([path])


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


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    """A log alone is no output of nccl-tests."""
    with pytest.raises(InputError, match="no row of nccl-tests"):
        read(tmp_path, LOG_LINE)


@given(st.lists(st.sampled_from(["1048576", "float", "sum", "-1", "1.5", "N/A", "#", "x" * 50, "9" * 30]), max_size=15))
def test_any_words_are_a_row_or_none(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    """No traceback, and a row has a size."""
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("  ".join(words) + "\n")
    try:
        output = read_test_output([path])
    except InputError:
        return
    assert output.rows[0].size_bytes == 1048576
