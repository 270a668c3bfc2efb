"""`train survive` as a user calls it."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page

FAILURES = Path(__file__).parents[2] / "golden" / "failures"
SMALL = ("--runs", "4", "--fail-on", "never")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs go below the folder a command is called in."""
    monkeypatch.chdir(tmp_path)


def test_it_says_what_is_effective_what_is_lost_and_what_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    """One screen of 160 columns; the record has a section on the page and a figure."""
    assert run(["train", "survive", "--failures", "llama3", "--gpus", "16384", "--plot", "intervals.svg", *SMALL]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("16,384 GPUs, failures of llama3: Llama 3 (arXiv 2407.21783), Table 5")
    assert lines[1].startswith("effective 84.63% (")
    assert any(line.startswith("first: checkpoints in memory") for line in lines)
    assert any(line.startswith("assumed: failures come independently of each other") for line in lines)
    assert lines[-1] == "record: runs/llama3-16384-survive"
    assert len(lines) <= 60
    assert max(len(line) for line in lines if not line.startswith("answer: ")) <= 160
    html = build_page([RunRecord.read(Path("runs/llama3-16384-survive"))], title="plan")
    assert "Planned effective time" in html
    assert "effective time by the work between two saves" in html
    assert Path("intervals.svg").read_text().startswith("<?xml")


def test_a_table_of_ones_own_in_memory_with_spares_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Tables and figures as one JSON value; spares and memory lift the effective time."""
    words = ["train", "survive", "--failures", str(FAILURES / "ours.csv"), "--gpus", "2048", "--json", *SMALL]
    assert run(words) == 0
    plain = json.loads(capsys.readouterr().out)
    assert run([*words, "--memory-every", "60 s", "--spares", "8", "--out", "other"]) == 0
    tiered = json.loads(capsys.readouterr().out)
    assert tiered["effective_fraction"] > plain["effective_fraction"] + 0.005
    assert sum(row["share_fraction"] for row in plain["survival_parts"]) == pytest.approx(1.0)
    assert [row["cause"] for row in plain["survival_causes"]] == ["GPU", "switch", "known"]
    assert "1 rates have no count and are taken as exact" in plain["notes"]


def test_timers_of_rdma_say_which_flaps_end_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    """NCCL's timeout of 14 survives less than a second of a flap of 5 s; 20 survives nearly all, and is a knob."""
    words = ["train", "survive", "--failures", "llama3", "--gpus", "1024", "--flaps", "0.01", "--json", *SMALL]
    shares = []
    for timeout in ("14", "20"):
        assert run([*words, "--timeout", timeout, "--out", timeout]) == 0
        printed = json.loads(capsys.readouterr().out)
        shares.append(printed["effective_fraction"])
        assert printed["num_flaps_survived"] + printed["num_flaps_fatal"] == pytest.approx(1024 * 0.01 * 54)
        assert any("flaps end the job" in note for note in printed["notes"])
        knob = next(row for row in printed["survival_knobs"] if row["knob"] == "NCCL's timers")
        assert knob["then"] == f"timeout {max(20, int(timeout) + 1)}, 7 retries"
    assert shares[1] > shares[0] + 0.02


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--failures", "lama3", "--gpus", "8"], "did you mean 'llama3'"),
        (["--failures", "llama3"], "--gpus, --recipe: neither is given"),
        (["--failures", "llama3", "--gpus", "8", "--recipe", "tiny"], "--gpus, --recipe: both are given"),
        (["--failures", "llama3", "--gpus", "8", "--step", "0 s"], "step_s: 0.0"),
        (["--failures", "llama3", "--gpus", "8", "--step", "soon"], "--step"),
        (["--failures", "llama3", "--gpus", "8", "--plot", "x.gif"], "x.gif"),
    ],
)
def test_a_mistake_ends_with_two(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong, where, and what is allowed."""
    assert run(["train", "survive", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_recipe_gives_the_number_of_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    """The recipe of 175 B parameters has 12,288 ranks."""
    assert run(["train", "survive", "--failures", "meta", "--recipe", "175b", "--json", *SMALL]) == 0
    assert json.loads(capsys.readouterr().out)["mttf_s"] == pytest.approx(1000 / 6.5 / 1536 * 86400, rel=1e-3)
