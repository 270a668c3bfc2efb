"""Lines of NCCL Inspector as measured collectives."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.measurement.files import read_measurements
from fabrictune.collectives.nccl.inspector import _Reader, is_inspector, read_inspector
from fabrictune.foundation.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "nccl" / "inspector.jsonl"


def test_a_collective_takes_as_long_as_its_first_rank() -> None:
    """All-reduces of 1 MiB take 120, 130, ..., 170 us on rank 0, 20 us less on rank 4, which comes later."""
    results = read_inspector(GOLDEN)
    small, large, scattered = results.rows
    assert (small.name, small.size_bytes, small.num_ranks) == ("all_reduce", 2**20, 8)
    assert (small.mean_ns, small.skew_ns) == (145_000, 20_000)
    assert (large.mean_ns, large.skew_ns) == (30_010_000, 0)
    assert scattered.name == "reduce_scatter"
    assert results.hosts == ("node0", "node1")
    assert results.notes == (
        "NCCL Inspector: medians of 12 collectives, each the longest of up to 2 ranks; whether they were in place is "
        "not logged",
        "operations without a measurement here, left out: Reduce 1, point-to-point 1",
        "lines that are no record of Inspector, left out: 1",
        "times by the processor's clock instead of the GPU's: 3",
    )


def test_its_bandwidths_are_those_of_its_own_documentation(tmp_path: Path) -> None:
    """A reduce-scatter of 2 GiB a rank, 8 ranks, 41,057 us: 418.439467 GB/s and 366.134533 on the bus."""
    record = json.loads(GOLDEN.read_text().splitlines()[0])
    record["coll_perf"] |= {"coll": "ReduceScatter", "coll_msg_size_bytes": 2**31, "coll_exec_time_us": 41057}
    path = tmp_path / "node0-pid7.log"
    path.write_text(json.dumps(record) + "\n")
    (row,) = read_inspector(path).rows
    assert row.size_bytes == 2**34
    assert row.algorithm_bandwidth_bps / 8e9 == pytest.approx(418.439467, rel=1e-6)
    assert row.bus_bandwidth_bps / 8e9 == pytest.approx(366.134533, rel=1e-6)


def test_a_folder_is_one_job(tmp_path: Path) -> None:
    """A file for each process, and the collectives of all of them by their numbers."""
    rows = GOLDEN.read_text().splitlines()[:4]
    for number, pair in enumerate((rows[::2], rows[1::2])):
        (tmp_path / f"node{number}-pid1.log").write_text("\n".join(pair) + "\n")
    imported = read_measurements(tmp_path)
    assert (imported.source, imported.num_hosts) == ("NCCL Inspector", 2)
    assert [(row.mean_ns, row.skew_ns) for row in imported.rows] == [(125_000, 20_000)]


def test_a_file_without_a_collective_is_refused(tmp_path: Path) -> None:
    """Point-to-point operations alone."""
    path = tmp_path / "p2p.log"
    path.write_text(next(row for row in GOLDEN.read_text().splitlines() if "p2p_perf" in row) + "\n")
    assert is_inspector(path)
    with pytest.raises(InputError, match=r"no collective with a size and a time; .*left out: point-to-point 1"):
        read_measurements(path)


def test_a_line_of_a_gigabyte_is_read_in_pieces(tmp_path: Path) -> None:
    """And counts as one that is damaged."""
    path = tmp_path / "big.log"
    path.write_bytes(GOLDEN.read_bytes() + b"\n" + b"x" * (3 * 2**20) + b"\n")
    assert "lines that are no record of Inspector, left out: 2" in read_inspector(path).notes


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3))
def test_any_value_in_place_of_a_number_is_left_out(value: Any) -> None:
    """No value of JSON is a traceback."""
    record = json.loads(GOLDEN.read_text().splitlines()[0])
    for part, key in (("coll_perf", "coll_exec_time_us"), ("coll_perf", "coll_sn"), ("header", "n_ranks")):
        changed = {**record, part: {**record[part], key: value}}
        reader = _Reader()
        reader._read_line(json.dumps(changed).encode())
        assert reader.num_damaged + len(reader.times_us) == 1
