"""The answer of a record's page ends a command's terminal output and stands in its JSON value, in the same words."""

import json
from pathlib import Path

import pytest

from fabrictune.cli import framework
from fabrictune.cli.framework.output import print_paragraph
from fabrictune.cli.main import run
from fabrictune.reports.page import write_page
from fabrictune.scenario.bundled import FOLDER

CLI = Path(framework.__file__).parents[1]
ANSWER = "The job takes 163.3 us. Of 3 expectations 3 met, 0 broken."


def sim_run(*words: str) -> int:
    return run(["sim", "run", str(FOLDER / "incast.yaml"), "--out", "run", *words])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def test_terminal_json_and_page_have_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    """An incast of 8 MB into one port of 400 Gbps, with three expectations."""
    assert sim_run() == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [f"answer: {ANSWER}", "record: run"]
    assert sim_run("--json") == 0
    assert list(json.loads(capsys.readouterr().out).items())[:3] == [
        ("record", "run"),
        ("answer", ANSWER),
        ("notes", []),
    ]
    assert f"<p>{ANSWER}</p>" in write_page([Path("run")]).read_text()


def test_a_quiet_command_prints_findings_and_paths_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """As its help says."""
    assert sim_run("--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "record: run"
    assert not any(line.startswith("answer: ") for line in lines)


def test_an_answer_over_seeds_has_its_interval_and_no_second_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """A study that has no findings ends with it, too."""
    words = ["--set", "traffic.placement=contiguous", "--seeds", "4", "--out", "study"]
    assert run(["ecmp", "whatif", str(FOLDER / "demo-interleaved.yaml"), *words]) == 0
    *_, answer, record = capsys.readouterr().out.splitlines()
    assert answer.startswith("answer: Best of ")
    assert "95 % interval" in answer
    assert record == "record: study"


def test_how_a_json_value_begins_is_written_in_one_place() -> None:
    """A command that puts its record's place there itself would have no answer; the demo has several records."""
    own = {path.relative_to(CLI) for path in CLI.rglob("*.py") if '"record": str(' in path.read_text()}
    assert own == {Path("demo.py"), Path("framework", "records.py")}


def test_a_long_answer_is_wrapped_to_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a pipe it stays one line, for whoever reads it by lines; a control character is shown, never obeyed."""
    text = "answer: " + "words " * 20 + "\x1b[2J"
    print_paragraph(text)
    assert len(capsys.readouterr().out.splitlines()) == 1
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_paragraph(text)
    first, second, third = capsys.readouterr().out.splitlines()
    assert max(map(len, (first, second, third))) <= 60
    assert second.startswith("  words")
    assert "\x1b" not in third
