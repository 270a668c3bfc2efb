"""`sim sweep` as a user calls it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.cc.laws import LAWS
from fabrictune.cli.main import run
from fabrictune.cli.sim.sweep import print_sensitivity
from fabrictune.foundation.records import RunRecord
from tests.fabrictune.sweeps.conftest import SWEEP

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs go below the folder a command is called in."""
    monkeypatch.chdir(tmp_path)


def test_it_prints_the_best_and_what_matters(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """One star for the shortest message with few marks, then by time; the message's size explains it."""
    assert run(["sim", "sweep", str(write())]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 6 points are Pareto-optimal (*); 2 seeds each"
    assert lines[1].split() == ["traffic.message", "engine.ecn.kmin", "completion_time.max", "ecn_marks"]
    assert lines[2].split()[:5] == ["*", "50", "KB", "100", "KB"]
    sizes_kb = [int(words[words[0] in "*-"]) for words in map(str.split, lines[2:8])]
    assert sizes_kb == sorted(sizes_kb)
    assert any(line.split()[:2] == ["traffic.message", "100%"] for line in lines)
    assert lines[-1] == "record: runs/small-sweep/result"
    assert RunRecord.read(Path("runs/small-sweep/result")).run["command"].startswith("fabrictune sim sweep")


def test_a_small_sweep_needs_no_file(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """The scenario itself, a key and its values, what is good; as JSON."""
    write()
    options = ["--vary", "traffic.message=50 KB; 100 KB", "--objective", "makespan", "--seeds", "1", "--json"]
    assert run(["sim", "sweep", "small.yaml", *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["record"] == "runs/small-sweep/result"
    assert {law["law"] for law in printed["laws"]} <= set(LAWS)
    assert [point["vary.traffic.message"] for point in printed["points"]] == ["50 KB", "100 KB"]
    assert [point["is_on_front"] for point in printed["points"]] == [1, 0]
    assert [finding["id"] for finding in printed["findings"]] == ["sweep.one-seed"]


def test_a_front_of_one_seed_is_said_to_be_unfounded(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """In the heading and as a warning; two seeds pass the check."""
    write()
    options = ["--vary", "traffic.message=50 KB; 100 KB", "--objective", "makespan"]
    assert run(["sim", "sweep", "small.yaml", *options, "--seeds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "are Pareto-optimal (*); one seed: this front is unfounded, --seeds 5 gives intervals" in printed
    assert "warning: sweep small-sweep: one seed: the Pareto front and the sensitivities are unfounded" in printed
    assert run(["sim", "sweep", "small.yaml", *options, "--seeds", "2"]) == 0
    results = {check.rule: check.result.value for check in RunRecord.read(Path("runs/small-sweep/result")).checks or ()}
    assert results == {"sweep.point-failed": "passed", "sweep.point-unfinished": "passed", "sweep.one-seed": "passed"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["small.yaml", "--vary", "traffic.mesage=1 KB;2 KB"],
            "sweep: traffic.mesage: unknown key 'mesage'\n  did you mean 'message'?\n",
        ),
        (
            ["small.yaml", "--vary", "traffic.message=1 KB;2 KB", "--objective", "makespan of job"],
            "objectives: unknown part of the traffic 'job'\n",
        ),
        (
            ["small.yaml", "--vary", "traffic.message"],
            "--vary traffic.message: no values\n  allowed: KEY=VALUE;VALUE\n",
        ),
        (
            ["small.yaml", "--vary", "traffic.message=1 KB;2 KB", "--objective", "makespam"],
            "--objective: objectives[0].metric: unknown metric 'makespam'\n  did you mean 'makespan'?\n",
        ),
        (
            ["small.yaml", "--vary", "traffic.message=1 KB"],
            "--vary: vary[0].values: '1 KB'\n  allowed: two different values or more\n",
        ),
        (
            ["sweep.yaml", "--objective", "makespan"],
            "--objective: given without --vary\n  next: set it in sweep.yaml, or give --vary\n",
        ),
        (["nowhere.yaml"], "nowhere.yaml: no such file\n  next: check the path\n"),
    ],
)
def test_a_mistake_is_one_message(
    write: Write, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """With place and guess; exit code 2."""
    write()
    assert run(["sim", "sweep", *arguments]) == 2
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere"])
def test_a_cluster_that_is_not_there_is_named_at_once(
    write: Write, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    """Port 1 is closed, and `nowhere` has no port; exit code 3."""
    pytest.importorskip("ray")
    assert run(["sim", "sweep", str(write()), "--on", "ray", "--ray-address", address]) == 3
    assert capsys.readouterr().err.startswith(f"{address}: no cluster (")


def test_points_without_results_are_warned_of(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """A marking threshold above the one where all is marked; by --fail-on the exit code."""
    path = str(write(SWEEP.replace("10 KB, 100 KB", "10 KB, 20 MB")))
    assert run(["sim", "sweep", path]) == 0
    assert "warning: traffic.message = 50 KB; engine.ecn.kmin = 20 MB: " in capsys.readouterr().out
    assert run(["sim", "sweep", path, "--fail-on", "warning"]) == 1


def test_a_sensitivity_below_five_percent_has_no_direction(capsys: pytest.CaptureFixture[str]) -> None:
    """4 % of the variance is within the noise of a search, so its direction is, too."""
    shares = {"a": 0.60, "b": 0.04, "c": 0.05}
    measures = (("variance_share", shares), ("rank_correlation", dict.fromkeys(shares, -0.3)))
    rows = [
        {"key": key, "metric": "fairness", "measure": measure, "value": values[key]}
        for measure, values in measures
        for key in shares
    ]
    print_sensitivity(rows, ["fairness"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[-3:]] == [["a", "60%", "falling"], ["b", "4%"], ["c", "5%", "falling"]]
