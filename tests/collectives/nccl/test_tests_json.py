"""The JSON of nccl-tests: its rows and head, what is kept of its environment, and what is refused."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.nccl import tests_json
from fabrictune.collectives.nccl.tests_json import read_test_json
from fabrictune.collectives.nccl.tests_output import Spread, Timing
from fabrictune.foundation.errors import InputError

TIMING = {"time": 74.78, "alg_bw": 14.02, "bus_bw": 24.54, "nwrong": 0.0}
ROW = {
    "size": 1048576,
    "count": 262144,
    "type": "float",
    "redop": "sum",
    "root": "    -1",
    "out_of_place": TIMING,
    "in_place": {**TIMING, "nwrong": None},
    "actual_iterations": 20,
    "experiment_name": "AllReduce",
}
RUN: dict[str, Any] = {
    "version": 2,
    "start_time": "2026-11-21 07:00:00",
    "args": ["/home/me/nccl-tests/build/all_reduce_perf", "-b", "1M"],
    "env": ["NCCL_IB_HCA==mlx5_0:1", "AWS_SECRET_ACCESS_KEY=hunter2", "HOME=/home/me"],
    "nccl_version": 22807,
    "config": {
        "nthreads": 1,
        "ngpus": 8,
        "devices": [
            {"rank": 0, "group": 0, "pid": 1, "hostname": "node-a", "device": 0},
            {"rank": 8, "group": 0, "pid": 2, "hostname": "node-b", "device": 0},
        ],
    },
    "results": [ROW],
    "out_of_bounds": {"count": 0, "okay": "true"},
    "average_bus_bandwidth": {"bandwidth": 24.54, "okay": "unchecked"},
    "errors": [],
    "end_time": "2026-11-21 07:01:00",
}


def written(folder: Path, run: Any) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(run))
    return path


def test_more_rows_than_a_run_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """150,000 rows, a file of 50 MB, took 15 s and 850 MiB."""
    monkeypatch.setattr(tests_json, "MAX_ROWS", 1)
    with pytest.raises(InputError, match=r"json: 2 rows\n  allowed: 1\n  next: give fewer runs in a file$"):
        read_test_json(written(tmp_path, {**RUN, "results": [ROW, ROW]}))


def test_a_run_is_read(tmp_path: Path) -> None:
    """Two processes of eight GPUs are sixteen ranks; an unchecked result is not a right one."""
    output = read_test_json(written(tmp_path, RUN))
    assert (output.program, output.num_ranks, output.hosts) == ("all_reduce_perf", 16, ("node-a", "node-b"))
    assert (output.num_out_of_bounds, output.average_bus_bandwidth_bps) == (0, 24.54 * 8e9)
    (row,) = output.rows
    assert (row.size_bytes, row.num_elements, row.type, row.reduction, row.root) == (
        1048576,
        262144,
        "float",
        "sum",
        -1,
    )
    assert row.out_of_place == Timing(
        duration_ns=74780, algorithm_bandwidth_bps=14.02 * 8e9, bus_bandwidth_bps=24.54 * 8e9, num_wrong=0
    )
    assert row.in_place is not None
    assert row.in_place.num_wrong is None


def test_of_the_environment_only_settings_are_left(tmp_path: Path) -> None:
    """No secret, and no home."""
    assert read_test_json(written(tmp_path, RUN)).settings == {"NCCL_IB_HCA": "=mlx5_0:1"}


def test_the_processor_s_time_a_spread_and_a_missing_timing(tmp_path: Path) -> None:
    """`-C` and `--per-iteration`, and a row that was run in place alone."""
    spread = {"min_us": 70.0, "max_us": 99.0, "avg_us": 75.0, "p99_us": 98.0, "cv_pct": 2.5, "times_us": [70.0, 99.0]}
    timing = {"cpu_time": 10.0, "alg_bw": 1.0, "bus_bw": 2.0, "nwrong": "nan"}
    row = {**ROW, "out_of_place": None, "in_place": timing, "in_place_per_iter": spread}
    (found,) = read_test_json(written(tmp_path, {"results": [row]})).rows
    assert found.out_of_place is None
    assert found.in_place is not None
    assert (found.in_place.duration_ns, found.in_place.num_wrong) == (10_000, None)
    assert found.in_place.spread == Spread(min_ns=70_000, max_ns=99_000, p99_ns=98_000, variation_fraction=0.025)


def test_a_broken_off_file_is_refused_with_its_line(tmp_path: Path) -> None:
    """A run that was killed leaves half of an object."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN)[:-300])
    with pytest.raises(InputError, match=r"run\.json:1: no JSON"):
        read_test_json(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"results": []}, "results: no row"),
        ({"results": None}, "no list `results`\n  allowed: the file of nccl-tests' option -J"),
        ({"results": [{**ROW, "size": -1}]}, r"results\[0\].size: '-1'\n  allowed: a whole number from 0 on"),
        ({"results": [{**ROW, "in_place": {**TIMING, "time": "x"}}]}, "in_place.time: \"'x'\""),
        ({"config": 3}, "config: '3'\n  allowed: an object"),
        ({"env": "HOME"}, "env: \"'HOME'\"\n  allowed: a list"),
    ],
)
def test_what_stands_in_a_wrong_place_is_told(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """With its key, what is there and what may be there."""
    with pytest.raises(InputError, match=message):
        read_test_json(written(tmp_path, {**RUN, **change}))


VALUES: st.SearchStrategy[Any] = st.sampled_from([None, -1, 10**17, 1.5, "x", [], {}, True, [None], {"time": []}])


@given(st.sampled_from(sorted(RUN)), st.sampled_from(sorted(ROW)), VALUES, VALUES)
def test_any_value_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, row_key: str, value: Any, row_value: Any
) -> None:
    """Whatever stands where."""
    path = written(tmp_path_factory.mktemp("values"), {**RUN, "results": [{**ROW, row_key: row_value}], key: value})
    try:
        output = read_test_json(path)
    except InputError:
        return
    assert output.rows[0].size_bytes >= 0


@given(st.integers(0, 10**6), st.binary(max_size=8), st.integers(0, 20))
def test_damaged_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, piece: bytes, num_lost: int
) -> None:
    """Overwritten, lost or inserted anywhere."""
    content = json.dumps(RUN).encode()
    begin = place % len(content)
    path = tmp_path_factory.mktemp("bytes") / "run.json"
    path.write_bytes(content[:begin] + piece + content[begin + num_lost :])
    with suppress(InputError):
        read_test_json(path)
