"""Files that a fit reads, and those that it does not."""

from pathlib import Path

import pytest

from fabrictune.collectives.measurement.files import ImportHints, read_measurements
from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.measurement.perftest_files import read_perftest
from fabrictune.rdma_bench.measurement.perftest_record import make_perftest_record
from fabrictune.validate.fit.series import MeasuredTime, SeriesKey, make_series
from fabrictune.validate.fit.sources import ALLOWED, FitHints, read_times

GOLDEN = Path(__file__).parents[3] / "golden"
HEAD = """# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#  Rank  0 Group  0 Pid 1 on {first} device  0 [0x00] NVIDIA H100
#  Rank  1 Group  0 Pid 1 on {second} device  1 [0x01] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def nccl_tests(path: Path, rows: dict[int, tuple[float, float]], second: str = "a") -> Path:
    """Write an all-reduce of two ranks: size to microseconds out of place and in place."""
    lines = []
    for size, times in rows.items():
        cells = "".join(f"  {time:8.2f}  {size / time / 1e3:.2f}  {size / time / 1e3:.2f}  0" for time in times)
        lines.append(f"  {size}  {size // 4}  float  sum  -1{cells}\n")
    path.write_text(HEAD.format(first="a", second=second) + "".join(lines) + "# Avg bus bandwidth : 0\n")
    return path


def test_places_of_one_size_are_one_point_their_median(tmp_path: Path) -> None:
    file = read_times(
        nccl_tests(tmp_path / "a.txt", {2**20: (90, 110), 2**21: (150, 150)}), FitHints(operation="all_reduce")
    )
    (one,) = make_series(file.times)
    assert one.key == SeriesKey(kind="collective", operation="all_reduce", num_ranks=2, num_hosts=1)
    assert one.size_bytes == (2**20, 2**21)
    assert one.time_ns == pytest.approx((100e3, 150e3))


def test_hosts_are_counted_from_the_list_of_ranks(tmp_path: Path) -> None:
    path = nccl_tests(tmp_path / "a.txt", {2**20: (90, 90)}, second="b")
    assert read_times(path, FitHints(operation="all_reduce")).times[0].key.num_hosts == 2


def test_a_file_and_its_record_are_the_same_times(tmp_path: Path) -> None:
    path = nccl_tests(tmp_path / "a.txt", {2**20: (90, 110), 2**21: (150, 150)}, second="b")
    folder = read_measurements(path, ImportHints(name="all_reduce")).record(started=0.0).write(tmp_path / "record")
    times, of_record = read_times(path, FitHints(operation="all_reduce")).times, read_times(folder, FitHints()).times
    assert [(one.key, one.size_bytes, one.time_ns) for one in times] == [
        (one.key, one.size_bytes, one.time_ns) for one in of_record
    ]


def test_perftest_is_latencies_and_times_by_message() -> None:
    """2.04 us by the median of a read; 65,536 B at 23.14 Gbps take 22.66 us."""
    (read,) = read_times(GOLDEN / "perftest" / "read_lat.txt", FitHints()).times
    assert (read.key.kind, read.key.operation, read.time_ns) == ("latency", "RDMA_Read Latency", 1840.0)
    json = read_times(GOLDEN / "perftest" / "write_bw.json", FitHints()).times
    assert {one.key.kind for one in json} == {"bandwidth"}


def test_both_directions_at_once_are_left_out_and_said() -> None:
    file = read_times(GOLDEN / "perftest" / "bidirectional.txt", FitHints())
    assert file.notes[-1].endswith("rows of both directions at once, which are another quantity, left out: 1")
    assert all("Bidirectional" not in one.key.operation for one in file.times)


def test_a_record_of_perftest_is_read_like_its_file(tmp_path: Path) -> None:
    path = GOLDEN / "perftest" / "read_lat.txt"
    folder = make_perftest_record([read_perftest(path)], started=0.0).write(tmp_path / "record")
    (of_file,), (of_record,) = read_times(path, FitHints()).times, read_times(folder, FitHints()).times
    assert (of_file.key, of_file.time_ns) == (of_record.key, of_record.time_ns)


def test_counters_are_named_with_the_option_that_takes_them() -> None:
    path = GOLDEN / "counters" / "before.txt"
    with pytest.raises(InputError) as error:
        read_times(path, FitHints())
    assert str(error.value) == (
        f"{path}: counters of NICs\n  allowed: {ALLOWED}\n"
        "  next: give the snapshots before and after as --counters BEFORE AFTER"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("name: a\nnvlink: {latency: 1 us}\n", "a hardware profile"),
        ("name: a\nfabric: {builder: clos}\n", "a scenario"),
    ],
)
def test_files_of_ours_of_another_kind_are_named(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(InputError, match=what):
        read_times(tmp_path / "file.yaml", FitHints())


def test_a_run_without_its_hosts_asks_for_their_number(tmp_path: Path) -> None:
    path = nccl_tests(tmp_path / "a.txt", {2**20: (90, 90)})
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "Rank" not in line))
    with pytest.raises(InputError, match="say it with --num-hosts"):
        read_times(path, FitHints(operation="all_reduce", num_ranks=2))
    assert read_times(path, FitHints(operation="all_reduce", num_ranks=2, num_hosts=1)).times


def test_more_hosts_than_ranks_are_refused(tmp_path: Path) -> None:
    path = nccl_tests(tmp_path / "a.txt", {2**20: (90, 90)})
    with pytest.raises(InputError, match="2 ranks on 3 hosts"):
        read_times(path, FitHints(operation="all_reduce", num_ranks=2, num_hosts=3))


def test_two_files_of_one_series_that_contradict_each_other_are_refused() -> None:
    """Two systems, or two operations under one name: no parameter is both's."""
    key = SeriesKey(kind="collective", operation="all_reduce", num_ranks=16, num_hosts=2)
    times = [
        MeasuredTime(key=key, size_bytes=size, time_ns=factor * size, source=Path(name))
        for name, factor in (("one.txt", 1.0), ("two.txt", 3.0))
        for size in (1000, 2000)
    ]
    with pytest.raises(InputError) as error:
        make_series(times)
    assert str(error.value) == (
        "two.txt and one.txt: all_reduce, 16 ranks on 2 hosts twice, 3 times as long in the first: 1 KB 3 and 1 us,"
        " 2 KB 6 and 2 us\n"
        "  allowed: times of one system, within a factor of 1.5\n"
        "  next: fit each system by itself, or say what differs (--num-hosts, --operation)"
    )
