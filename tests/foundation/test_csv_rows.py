"""Rows of CSV files by name, and what is wrong with a file said with its place."""

from pathlib import Path

import pytest

from fabrictune.foundation.csv_rows import MAX_MISTAKES, read_csv_rows
from fabrictune.foundation.errors import InputError, Mistake


def read(path: Path, text: str) -> tuple[list[tuple[str, dict[str, str]]], list[Mistake]]:
    path.write_text(text)
    mistakes: list[Mistake] = []
    rows = read_csv_rows(path, required=("a", "b"), max_bytes=10_000, mistakes=mistakes)
    return [(row.where, dict(row.cells)) for row in rows], mistakes


def test_cells_have_the_first_lines_names_and_rows_their_places(tmp_path: Path) -> None:
    """Names without capitals and spaces, empty lines skipped, a short row a mistake of its own."""
    path = tmp_path / "rows.csv"
    rows, mistakes = read(path, "A, b ,c\n1,2,3\n\n4,5\n6, 7 ,8\n")
    assert rows == [(f"{path}:2", {"a": "1", "b": "2", "c": "3"}), (f"{path}:5", {"a": "6", "b": "7", "c": "8"})]
    assert mistakes == [Mistake(where=f"{path}:4", found="2 columns", allowed="3, as in the first line")]


def test_mistakes_are_bounded(tmp_path: Path) -> None:
    _, mistakes = read(tmp_path / "rows.csv", "a,b\n" + "1\n" * 100)
    assert len(mistakes) == MAX_MISTAKES


def test_a_file_without_a_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column b") as caught:
        read(tmp_path / "rows.csv", "a,c\n1,2\n")
    assert caught.value.mistakes[0].allowed == "a first line with a, b"
