"""Tables: a row is a line in a pipe, and wrapped on a terminal too narrow for it, never within a word."""

import pytest

from fabrictune.cli.framework.output import print_table

HEADINGS = ("key", "number", "meaning")
ROWS = [("a_long_name", "12,345", "hosts that share one set of switches"), ("b", "6", "cables")]


def test_a_row_is_a_line_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table(HEADINGS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "key          number  meaning",
        "a_long_name  12,345  hosts that share one set of switches",
        "b                 6  cables",
    ]


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (
            40,
            [
                "key          number  meaning",
                "a_long_name  12,345  hosts that share",
                "                     one set of switches",
                "b                 6  cables",
            ],
        ),
        (
            10,
            [
                "key          number  meaning",
                "a_long_name  12,345  hosts",
                "                     that",
                "                     share",
                "                     one set",
                "                     of",
                "                     switches",
                "b                 6  cables",
            ],
        ),
    ],
    ids=["fits", "too narrow for its words"],
)
def test_a_terminal_wraps_text(
    columns: int, lines: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(HEADINGS, ROWS)
    assert capsys.readouterr().out.splitlines() == lines
