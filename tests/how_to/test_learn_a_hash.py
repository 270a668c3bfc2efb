"""The page on learning a hash says what is true: its commands print the lines that it shows."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from fabrictune.cli.main import run

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "hash_learning"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "docs/how-to/learn-a-hash.md").read_text(), re.DOTALL | re.M)
(LEARN, PLAN) = (shlex.split(text)[1:] for kind, text in BLOCKS if kind == "sh")
(SCREEN,) = (text.splitlines() for kind, text in BLOCKS if not kind)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("choices.csv", "flows.csv"):
        shutil.copy(GOLDEN / name, tmp_path)
    monkeypatch.chdir(tmp_path)


def test_its_first_command_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Choices of a CRC-16 among eight next hops; the page leaves the last lines out."""
    assert run(LEARN) == 0
    assert capsys.readouterr().out.splitlines()[: len(SCREEN)] == SCREEN


def test_its_second_command_spreads_forty_flows_evenly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(PLAN) == 0
    assert "source ports of 40 flows: 5 to 5 flows on each next hop" in capsys.readouterr().out
    rows = Path("source_ports.csv").read_text().splitlines()
    assert len(rows) == 41
    assert rows[0] == "source,destination,destination_qp,source_port,next_hop"


def test_a_switch_that_was_not_observed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--switch", "swich"]) == 2
    assert "no switch 'swich' in choices.csv" in capsys.readouterr().err
    assert not Path("source_ports.csv").exists()


def test_a_hash_that_is_not_linear_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    """The same flows with next hops that no exclusive or gives: by the product of port and address."""
    lines = Path("choices.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    mixed = [",".join([*row[:3], f"s{int(row[2]) * int(row[1].split('.')[2]) // 7 % 8}"]) for row in rows]
    Path("mixed.csv").write_text("\n".join([lines[0], *mixed]))
    assert run(["ecmp", "learn-hash", "mixed.csv"]) == 1
    assert "hash not linear" in capsys.readouterr().out
