"""A trace on a fabric without a scenario: steps on one screen, assumptions with them, mistakes before the work."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from fabrictune.cli.main import run
from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.traces import Operation

Cli = Callable[..., "CompletedProcess[str]"]

US = 1_000_000  # picoseconds


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a trace of two ranks that work 100 us before an all-reduce, and a fabric of two hosts."""
    monkeypatch.chdir(tmp_path)
    rows = [
        TraceRow(
            rank=rank,
            operation=Operation.ALL_REDUCE,
            group=(0, 1),
            num_bytes=10**6,
            compute_before_ps=100 * US,
            axis="dp",
        )
        for rank in (0, 1)
    ]
    build_trace(rows).write(tmp_path / "step.parquet")
    settings = ["num_hosts=2", "hosts_per_tor_set=2", "nics_per_host=1", "tiers=2"]
    assert run(["topo", "build", "clos", *settings, "--out", "two.json", "--json"]) == 0
    return tmp_path


def test_a_trace_runs_on_a_fabric_without_a_scenario(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A megabyte round a ring of two takes 40 us at 200 Gbps, and all of it is exposed."""
    capsys.readouterr()
    assert run(["sim", "run", "--trace", "step.parquet", "--fabric", "two.json"]) == 0
    screen = capsys.readouterr().out
    assert "step-on-two: How long is a step of step.parquet on two.json?" in screen
    assert "replayed steps of 2 ranks; work and exposed communication of a rank\n" in screen
    assert re.search(r"^  step +time +work  exposed dp  without network  lower bound$", screen, re.M)
    assert [line for line in screen.splitlines() if line.startswith("assumed: ")] == [
        "assumed: layout tp 1, dp 2, pp 1, since the trace names none",
        "assumed: placement contiguous: ranks in order over the hosts, one GPU for each of a host's NICs",
        "assumed: law none, and the engine's default switches and NICs",
        "assumed: algorithm ring, 1 queue pair a connection, hash mixer",
    ]
    assert "record: runs/step-on-two" in screen


def test_a_program_gets_the_same_with_units(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Step, bound and path; the assumptions are notes of the record."""
    capsys.readouterr()
    assert run(["sim", "run", "--trace", "step.parquet", "--fabric", "two.json", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    (replay,) = values["replays"]
    (step,) = replay["steps"]
    assert step["work_ps"] == 100 * US
    assert step["work_alone_ps"] == 100 * US
    assert step["duration_ps"] == 100 * US + step["exposed"][0]["exposed_ps"]
    assert 140 * US < step["lower_bound_ps"] <= step["duration_ps"] < 145 * US
    assert [part["axis"] for part in replay["critical_path"]] == ["work", "dp"]
    assert sum(part["duration_ps"] for part in replay["critical_path"]) == step["duration_ps"]
    assert values["notes"][0] == "layout tp 1, dp 2, pp 1, since the trace names none"
    assert values["metrics"]["step_time"] == {"value": step["duration_ps"], "unit": "ps"}


@pytest.mark.parametrize(
    "words",
    [["--trace", "step.parquet"], ["--fabric", "two.json"], [], ["x.yaml", "--trace", "step.parquet"]],
    ids=["no-fabric", "no-trace", "nothing", "both"],
)
def test_half_a_request_is_refused(folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A scenario, or a trace and a fabric."""
    capsys.readouterr()
    assert run(["sim", "run", *words]) == 2
    assert "give a SCENARIO, or --trace and --fabric in its place" in capsys.readouterr().err


def test_a_fabric_too_small_is_refused_before_the_training(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight ranks on two hosts of one NIC each: no step is trained."""
    pytest.importorskip("torch")
    capsys.readouterr()
    assert run(["train", "run", "tiny", "--then-simulate", "two.json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "8 ranks for 2 GPUs at 1 a host" in printed.err
    assert not (folder / "runs").exists()


def test_a_run_and_its_replay_are_one_json_value(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The replay beside the steps that were trained, with the findings of both."""
    pytest.importorskip("torch")
    layout = ["--set", "degrees.layout.tp=1", "--set", "degrees.layout.pp=1", "--set", "degrees.virtual=1"]
    words = ["train", "run", "tiny", *layout, "--set", "num_steps=1", "--then-simulate", "two.json", "--json"]
    capfd.readouterr()
    assert run(words) == 0
    values = json.loads(capfd.readouterr().out)
    assert (values["record"], values["simulation"]["record"]) == ("runs/tiny", "runs/tiny-on-two")
    (replay,) = values["simulation"]["replays"]
    assert replay["num_ranks"] == 2
    assert len(replay["steps"]) == len(values["steps"]) == 1
    assert replay["steps"][0]["duration_ps"] >= replay["steps"][0]["lower_bound_ps"]
