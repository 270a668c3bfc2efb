"""The page on pages says what is true: its commands make pages with what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "read-a-page.md").read_text()
ONE_RUN, SEVERAL_RUNS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.M)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the commands run, beside the scenarios."""
    (tmp_path / "scenarios").symlink_to(ROOT / "fabrictune" / "scenarios")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_commands_make_a_page_with_its_answer(folder: Path) -> None:
    """Also each control that it names is there."""
    for command in ONE_RUN.splitlines():
        assert run([*shlex.split(command)[1:], "--json"]) == 0
    html = (folder / "runs" / "flap" / "report.html").read_text()
    (answer,) = re.findall(r"^   > (.*)$", PAGE, re.M)
    assert f'<div class="answer">\n<p>{answer}</p>' in html
    for said in ("Show all times", 'class="fault-span"', 'class="fault"', "Provenance"):
        assert said in html


def test_three_seeds_of_each_scenario_have_intervals(folder: Path) -> None:
    """The verdict and every indicator; a run whose flows collide ends with findings."""
    loop, *in_loop, done, build = SEVERAL_RUNS.splitlines()
    assert (loop, done) == ("for seed in 1 2 3; do", "done")
    for seed in "123":
        for command in in_loop:
            assert run([*shlex.split(command.replace("$seed", seed))[1:], "--json"]) in (0, 1)
    words = [
        name
        for word in shlex.split(build)[1:]
        for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    assert run(words) == 0
    html = (folder / "runs" / "laws.html").read_text()
    assert re.search(r"take [0-9.]+ \(95 % interval [0-9.]+ to [0-9.]+\) times as long as [^.]+, over seeds\.", html)
    assert ", over 3 seeds, paired</caption>" in html
    assert "Changes with intervals" in PAGE
    assert "<h2>Changes with intervals</h2>" in html
