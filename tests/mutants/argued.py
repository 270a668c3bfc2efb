"""Mutants that no test needs to kill: the table of docs/mutants.md, with the reason for each.

A row names a file, its line and the line that the mutation makes of it; no line number, which would not last.
"""

import re
from pathlib import Path

PAGE = "docs/mutants.md"
_ROW = re.compile(r"^\| (?P<path>\S+) \| `(?P<before>.+)` \| `(?P<after>.*)` \| (?P<reason>.+) \|$")


def argued(root: Path) -> dict[tuple[str, str, str], str]:
    """Return the reason by (path, line, mutated line)."""
    rows = (_ROW.match(line) for line in (root / PAGE).read_text().splitlines())
    return {
        (row["path"], row["before"].replace("\\|", "|"), row["after"].replace("\\|", "|")): row["reason"]
        for row in rows
        if row is not None
    }
