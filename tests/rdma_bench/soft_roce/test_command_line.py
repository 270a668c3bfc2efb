"""The commands that measure, on a real device: from trials to a profile that predictions use."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.rdma_bench.soft_roce.machine import VirtualMachine
from fabrictune.rdma_bench.soft_roce.workers import TOKEN
from fabrictune.rdma_bench.timers.trials import read_trials
from tests.rdma_bench.soft_roce.tries import first_good

pytestmark = pytest.mark.real

OFF = 0.15  # of the model


def test_trials_become_a_profile_and_the_profile_predicts(
    machine: VirtualMachine, places: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fitted to T 14 and 15, it says of T 16 and 3 retries, which were not tried, 4 * 268 ms within 15 %."""
    near, far = places
    ends = ["--sender", near, "--receiver", far, "--token-file", str(machine.share / TOKEN)]
    devices = ["--device", "rxe_a", "--peer-device", "rxe_b"]
    settings = ["--timeout", "14", "--timeout", "15", "--retries", "1", "--retries", "6", "--repeat", "3"]
    profile, out = tmp_path / "nic.json", tmp_path / "run"
    command = ["rdma", "timers", "measure", *ends, *devices, *settings, "--profile", str(profile), "--out", str(out)]
    predict = ["rdma", "timers", "predict", "--profile", str(profile), "--timeout", "16", "--retries", "3", "--json"]

    def predicted_ratio() -> float:
        assert run(command) == 0
        assert len(read_trials(out)) == 12
        assert RunRecord.read(out).run["is_partial"] is False
        capsys.readouterr()
        assert run(predict) == 0
        (prediction,) = json.loads(capsys.readouterr().out)
        assert prediction["confidence"] == "extrapolated"
        return float(prediction["gives_up_ns"]) / 1e9 / (4 * 4.096e-6 * 2**16)

    assert first_good(predicted_ratio, lambda ratio: abs(ratio - 1) <= OFF) == pytest.approx(1, abs=OFF)


def test_a_flap_is_measured_by_the_receivers_own_commands(
    machine: VirtualMachine, places: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T 16 and a cut of 300 ms: it resumes with the n-th retransmission, 2 or later, so not before n * 268 ms."""
    near, far = places
    ends = ["--sender", near, "--receiver", far, "--token-file", str(machine.share / TOKEN)]
    devices = ["--device", "rxe_a", "--peer-device", "rxe_b"]
    cut = ["--by-command", "--flap", "300ms", "--timeout", "16", "--retries", "6"]
    assert run(["rdma", "timers", "measure", *ends, *devices, *cut, "--out", str(tmp_path / "run"), "--json"]) == 0
    (trial,) = json.loads(capsys.readouterr().out)["trials"]
    assert (trial["status"], trial["cut_ns"]) == (0, 300_000_000)
    assert trial["retransmissions"] >= 2
    assert trial["after_ns"] / 1e9 > trial["retransmissions"] * 4.096e-6 * 2**16 * (1 - OFF)
