"""`fabrictune validate predict` as a user and a script meet it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run

pytest.importorskip("torch")

Output = pytest.CaptureFixture[str]
COMMAND = ["validate", "predict", "tiny", "--set", "device=cuda"]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def output(capsys: Output) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_prediction_is_one_json_value_with_intervals_and_assumptions(capsys: Output) -> None:
    """Causes are the step without slow hosts, of which the profile has none."""
    assert run([*COMMAND, "--json"]) == 0
    found = output(capsys)
    for name in ("step{}_ps", "tokens_per_s{}", "mfu_fraction{}"):
        low, value, high = (found[name.format(end)] for end in ("_low", "", "_high"))
        assert low < value < high
    assert sum(row["duration_ps"] for row in found["causes"]) == pytest.approx(found["step_ps"], rel=1e-6)
    assert [row["gain_fraction"] for row in found["changes"]] == sorted(
        (row["gain_fraction"] for row in found["changes"]), reverse=True
    )
    for name in ("cause.products{}_ps", "cause.tp{}_ps", "added_by_dp{}_ps"):
        low, value, high = (found[name.format(end)] for end in ("_low", "", "_high"))
        assert low <= value <= high
        assert low < high
    for row in found["changes"]:
        assert row["gain_fraction_low"] <= row["gain_fraction"] <= row["gain_fraction_high"]
    assert any("assumed" in note for note in found["notes"])
    assert Path(found["record"]).is_dir()


def test_measured_steps_are_fitted(capsys: Output, tmp_path: Path) -> None:
    """Two numbers, from three steps that took longer than predicted."""
    assert run([*COMMAND, "--json"]) == 0
    alone = output(capsys)
    rows = "\n".join(f"{alone['step_ps'] / 1e12 * m / 2},{m}" for m in (4, 8, 16))
    (tmp_path / "steps.csv").write_text(f"# my cluster\nstep_s,degrees.num_batches\n{rows}\n")
    assert run([*COMMAND, "--fit", "steps.csv", "--out", "fitted", "--json"]) == 0
    found = output(capsys)
    assert found["num_fitted_steps"] == 3
    assert found["step_low_ps"] < found["step_ps"] < found["step_high_ps"]
    assert found["step_ps"] > alone["step_ps"]


def test_a_gpu_with_too_little_memory_is_a_finding(capsys: Output, tmp_path: Path) -> None:
    """The exit code says so."""
    (tmp_path / "small.yaml").write_text(
        "name: small\nbase: a100\ngpu: {memory: {capacity: 1 MB}}\nsources: {gpu.memory.capacity: 'assumed: small'}\n"
    )
    assert run([*COMMAND, "--hardware", "small.yaml"]) == 1
    assert "train.memory-exceeded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "steps.csv: 0 rows\n  allowed: 1 to 64 measured steps\n"),
        (
            "seconds\n1\n",
            "steps.csv:1: seconds\n  allowed: the column step_s, and one for each recipe key that differs\n",
        ),
        ("step_s,degrees.num_batches\n0,4\n", "steps.csv:2: step_s '0'\n  allowed: seconds above 0\n"),
        ("step_s,degrees.num_batches\n1\n", "steps.csv:2: 1 values\n  allowed: 2, one for each column\n"),
        (
            "step_s,degrees.num_batches\n0.02,4\n0.01,32\n",
            "measured steps: a factor of",
        ),
        ("step_s\n1\n", "measured steps: 1\n  allowed: at least 2, one for each fitted number\n"),
    ],
)
def test_a_wrong_file_of_steps_is_refused(capsys: Output, tmp_path: Path, text: str, message: str) -> None:
    """With its line."""
    (tmp_path / "steps.csv").write_text(text)
    assert run([*COMMAND, "--fit", "steps.csv"]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_a_profile_without_a_peak_is_refused(capsys: Output, tmp_path: Path) -> None:
    """Nothing is assumed for it."""
    (tmp_path / "mine.yaml").write_text("name: mine\ngpu: {launch: 5 us}\nsources: {gpu: 'assumed: mine'}\n")
    assert run([*COMMAND, "--hardware", "mine.yaml"]) == 2
    assert "mine.yaml" in capsys.readouterr().err


def test_a_kernel_without_rates_is_refused(capsys: Output, tmp_path: Path) -> None:
    """An A100 has none of the third generation."""
    (tmp_path / "third.yaml").write_text(
        "name: third\nbase: a100\nsoftware: {attention: flash3}\nsources: {software: 'assumed: newest'}\n"
    )
    assert run([*COMMAND, "--hardware", "third.yaml"]) == 2
    assert capsys.readouterr().err == (
        "third: gpu.attention: no rates of flash3\n"
        "  allowed: one of unfused, flash1, flash2\n"
        "  next: give the kernel's rates, or set software.attention to one that has rates\n"
    )


SCENARIO = """
name: small
fabric: {builder: clos, num_hosts: 2, hosts_per_tor_set: 2, nics_per_host: 8, tiers: 2}
traffic: {workload: all_reduce, num_ranks: 8}
"""


def test_communication_is_simulated_on_a_scenarios_fabric(capsys: Output, tmp_path: Path) -> None:
    """With the work between requests, so that the step is at least its work."""
    (tmp_path / "small.yaml").write_text(SCENARIO)
    assert run([*COMMAND, "--scenario", "small.yaml", "--json"]) == 0
    found = output(capsys)
    assert found["cause.launches_ps"] < found["fabric_step_ps"] < 2 * found["step_ps"]
    assert found["fabric_step_low_ps"] < found["fabric_step_ps"] < found["fabric_step_high_ps"]


def test_a_job_larger_than_its_fabric_is_refused(capsys: Output, tmp_path: Path) -> None:
    """Eight ranks on four GPUs."""
    (tmp_path / "small.yaml").write_text(SCENARIO.replace("nics_per_host: 8", "nics_per_host: 2"))
    assert run([*COMMAND, "--scenario", "small.yaml"]) == 2
    assert "8 ranks for 4 GPUs at 2 a host" in capsys.readouterr().err
