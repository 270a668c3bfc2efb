"""Man pages: one a command, with the words of its help, and without a warning of groff."""

import shutil
import subprocess
from pathlib import Path

import click
import pytest

from fabrictune.cli.main import fabrictune, run
from fabrictune.cli.manual.pages import CommandPage, command_pages
from fabrictune.cli.manual.roff import man_page

PAGES = {page.name: page for page in command_pages(fabrictune)}


def test_every_command_has_a_page_with_its_help() -> None:
    """The summaries of a group are those of its commands' pages; options and the example are complete."""
    for page in PAGES.values():
        assert page.paragraphs, page.name
        assert {f"{page.name} {name}" for name, _ in page.commands} <= PAGES.keys()
        if not page.commands:
            assert any(line.startswith("fabrictune ") or "fabrictune" in line for line in page.example), page.name
    analyze = PAGES["fabrictune ecmp analyze"]
    assert analyze.usage == "[OPTIONS] SCENARIO"
    assert analyze.example[0] == "fabrictune ecmp analyze scenarios/demo-interleaved.yaml"
    assert "--findings-file FILE" in dict(analyze.options)


def test_letters_that_roff_would_obey_are_printed() -> None:
    """A backslash, a hyphen, a quotation mark, and a dot or an apostrophe at the start of a line."""
    page = CommandPage(
        name="x y",
        summary="A -b",
        usage="",
        paragraphs=(".so /etc/passwd", r"a \fB b", "'quoted' \"so\""),
        example=(".exit",),
        options=(),
        commands=(),
    )
    text = man_page(page, "1")
    assert "\n\\&.so /etc/passwd\n" in text
    assert "\na \\efB b\n" in text
    assert "\n\\&'quoted' \\(dqso\\(dq\n" in text
    assert "\n\\&.exit\n" in text


def test_groff_has_nothing_to_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All pages are written, and read without a warning."""
    assert run(["manual", "--out", str(tmp_path)]) == 0
    written = sorted(tmp_path.iterdir())
    assert capsys.readouterr().out == f"{len(PAGES)} pages: {tmp_path}\n"
    assert {path.name for path in written} == {f"{name.replace(' ', '-')}.1" for name in PAGES}
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-z", *map(str, written)], capture_output=True, text=True, check=True
    )
    assert not done.stderr


def test_pages_follow_the_listing() -> None:
    """The first is the entry point's; those of a group come before its commands."""
    names = list(PAGES)
    assert names[0] == "fabrictune"
    listed = fabrictune.list_commands(click.Context(fabrictune))
    assert [name.split()[1] for name in names if len(name.split()) == 2] == listed
