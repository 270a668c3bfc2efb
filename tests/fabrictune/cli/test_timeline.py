"""`trace timeline` as a user calls it."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from tests.observability.timeline.test_sources import trace


def test_it_says_what_it_drew_and_what_it_takes_for_granted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two ranks, two steps."""
    trace().write(tmp_path / "step.parquet")
    out = tmp_path / "step.pftrace.gz"
    assert run(["trace", "timeline", str(tmp_path / "step.parquet"), "--out", str(out)]) == 0
    assert capsys.readouterr().out == (
        "16 slices on 4 tracks of 1 process, 2 arrows\n"
        "note: hosts: not in the trace: its ranks are taken to have one clock\n"
        f"timeline: {out}; open it at ui.perfetto.dev, which reads it in the browser\n"
    )
    assert out.read_bytes()[:2] == b"\x1f\x8b"


def test_machines_get_the_facts_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Zero counts too: what was not left out is said."""
    trace().write(tmp_path / "step.parquet")
    words = ["trace", "timeline", str(tmp_path / "step.parquet"), "--steps", "1", "--ranks", "0-1"]
    assert run([*words, "--out", str(tmp_path / "step.pftrace"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["num_slices"], printed["num_arrows"]) == (8, 1)
    assert printed["facts"]["requests without a time, left out"] == "0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "9-x"], "fabrictune trace timeline: --steps: 9-x\n  allowed: A-B, or one step\n"),
        (["--ranks", "3-1"], "fabrictune trace timeline: --ranks: 3-1\n  allowed: ranks such as 0-7,16\n"),
        (["--steps", "7"], "step.parquet: nothing in these steps and ranks\n  allowed: steps 0 to 1 of ranks 0 to 1\n"),
    ],
)
def test_mistakes_end_with_code_2_and_no_file(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with what is allowed."""
    monkeypatch.chdir(tmp_path)
    trace().write(Path("step.parquet"))
    assert run(["trace", "timeline", "step.parquet", "--out", "step.pftrace", *words]) == 2
    assert capsys.readouterr().err == message
    assert not Path("step.pftrace").exists()
