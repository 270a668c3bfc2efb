"""`coll compare --hardware`: measured times beside NCCL's model of a profile's hosts."""

import json
from pathlib import Path

import pytest

from benchmarks.studies.nccl_curves.curves import rows_of
from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns

WORDS = ["coll", "compare", "p5.txt", "--operation", "all_reduce", "--num-ranks", "16", "--hardware", "p5"]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published all-reduces of two p5 hosts, whose list of ranks is missing."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(
        f"  {size} {size // 4} float sum -1"
        + "".join(f" {time:.2f} {size / time / 1e3:.2f} {size / time / 1e3 * 1.875:.2f} 0" for time in times)
        + "\n"
        for size, *times in rows_of("p5_2")
    )
    Path("p5.txt").write_text(f"# nThread 1 nGpus 1 minBytes 8\n{rows}# Avg bus bandwidth : 0\n")


def test_the_median_error_and_the_points_inside_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Nine in ten published times lie inside the interval of 90 %, up to the few of NCCL's own misses."""
    assert run([*WORDS, "--num-hosts", "2", "--out", "compare", "--fail-on", "never"]) == 0
    output = capsys.readouterr().out
    assert "measured beside NCCL's model on hosts of the profile p5: median error" in output
    table = RunRecord.read(Path("compare")).tables["nccl_model"]
    assert len(table["size_bytes"]) == 64
    assert table["is_inside"].mean() >= 0.85
    assert table["choice"][0] == "Tree LL"


def test_json_has_each_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--num-hosts", "2", "--out", "compare", "--fail-on", "never", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["nccl_model"]
    assert rows[0]["ratio"] == pytest.approx(rows[0]["measured_ps"] / rows[0]["expected_ps"])


def test_a_run_without_hosts_asks_for_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--out", "compare"]) == 2
    assert "say it with --num-hosts" in capsys.readouterr().err


def test_a_bench_over_gloo_is_none_of_nccls(capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"operation": "all_reduce", "is_in_place": 1, "num_ranks": 2, "mean_ns": 1e5, "num_wrong": 0}
    more = {"algorithm_bandwidth_bps": 1e9, "bus_bandwidth_bps": 1e9}
    rows = [{**columns, **more, "size_bytes": size} for size in (8, 1024)]
    RunRecord(
        kind="coll bench",
        run=describe_run(seed=0, started=0.0, configuration={"backend": "gloo", "num_hosts": 1}),
        tables={"measurements": to_columns("measurements", rows)},
    ).write(Path("bench"))
    assert run(["coll", "compare", "bench", "--hardware", "h100", "--out", "compare"]) == 2
    assert "a bench over gloo, which NCCL's model does not describe" in capsys.readouterr().err
