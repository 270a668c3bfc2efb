"""`validate fit`, as a user and a script meet it."""

import json
from pathlib import Path

import pytest
import yaml

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.hardware.files import load_profile

GOLDEN = Path(__file__).parents[2] / "golden"
HEAD = """# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#  Rank  0 Group  0 Pid 1 on a device  0 [0x00] NVIDIA H100
#  Rank  1 Group  0 Pid 1 on a device  1 [0x01] NVIDIA H100
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and profiles go to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def all_reduce(sizes: list[int]) -> str:
    """Write all-reduces of two GPUs, 20 us and 100 GB/s, and return the file's name."""
    rows = []
    for size in sizes:
        time_us = 20 + size / 100e3
        rate = f"{size / time_us / 1e3:.2f}"
        rows.append(f"  {size} {size // 4} float sum -1 {time_us:.2f} {rate} {rate} 0 {time_us:.2f} {rate} {rate} 0\n")
    Path("all_reduce.txt").write_text(HEAD + "".join(rows))
    return "all_reduce.txt"


def fit(*words: str) -> int:
    """Run the command on the file of all-reduces."""
    return run(["validate", "fit", *words, "--operation", "all_reduce", "--hardware", "h100", "--out", "mine.yaml"])


def test_the_table_has_value_interval_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(all_reduce([8 * 4**power for power in range(14)])) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == "parameter value 90 % interval verdict"
    assert lines[2].startswith("nvlink.latency 20 us 20 us to 20 us well determined")
    assert lines[3].startswith("nvlink.collective 100 GB/s")
    assert "all_reduce, 2 ranks on 1 host: median error 0.0%, largest 0.0%" in lines
    assert lines[-3] == "profile: mine.yaml; use it with --hardware mine.yaml"
    assert lines[-2].startswith("answer: ")
    assert lines[-1] == "record: runs/fit"
    assert load_profile(Path("mine.yaml")).nvlink.latency_ps == pytest.approx(20e6, rel=1e-3)


def test_json_has_parameters_times_and_the_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(all_reduce([8 * 4**power for power in range(14)]), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["profile"] == "mine.yaml"
    assert [row["verdict"] for row in answer["fitted_parameters"]] == ["well determined"] * 2
    assert len(answer["fitted_times"]) == 14
    assert set(RunRecord.read(Path("runs/fit")).tables) >= {"fitted_parameters", "fitted_times", "fitted_segments"}


def test_large_sizes_alone_warn_and_say_what_to_measure(capsys: pytest.CaptureFixture[str]) -> None:
    """From 64 MB on 20 us are 3 % of a time: the finding names the size below which a latency shows."""
    assert fit(all_reduce([2**power for power in range(26, 34)]), "--fail-on", "warning") == 1
    output = capsys.readouterr().out
    assert "nvlink.latency: sizes below 2" in output
    assert "[fit.not-determined]" in output
    assert "latency" not in yaml.safe_load(Path("mine.yaml").read_text())["nvlink"]


def test_one_size_is_an_error_and_leaves_no_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(all_reduce([2**20])) == 2
    assert "one size only, 1.049 MB" in capsys.readouterr().err
    assert not Path("mine.yaml").exists()


def test_a_base_without_a_peak_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("base.yaml").write_text("name: base\ngpu: {launch: 5 us}\nsources: {}\n")
    words = ["validate", "fit", all_reduce([8, 64, 512]), "--operation", "all_reduce", "--hardware", "base.yaml"]
    assert run(words) == 2
    assert "peak" in capsys.readouterr().err


def test_counters_of_nics_are_shown_beside_what_they_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    counters = [str(GOLDEN / "counters" / name) for name in ("before.txt", "after.txt")]
    assert fit(all_reduce([8 * 4**power for power in range(14)]), "--counters", *counters) == 0
    output = capsys.readouterr().out
    assert "per GB sent" in output
    assert "thresholds and probability of marking" in output


def test_files_are_fitted_together_with_perftest(capsys: pytest.CaptureFixture[str]) -> None:
    """One row of a read's latency beside an all-reduce: three parameters, of which one row cannot tell two."""
    read = str(GOLDEN / "perftest" / "read_lat.txt")
    assert fit(all_reduce([8 * 4**power for power in range(14)]), read, "--json") == 0
    rows = {row["parameter"]: row for row in json.loads(capsys.readouterr().out)["fitted_parameters"]}
    assert rows["nvlink.latency"]["verdict"] == "well determined"
    assert rows["network.latency"]["is_held"]
    assert rows["network.latency"]["reason"] == "only a sum of it and network.rate shows"
