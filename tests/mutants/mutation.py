"""A mutation: one small change of a source file that some test should notice.

What is changed, in Python and C++ alike: comparisons at their boundary, arithmetic, bitwise and logical operators,
`not`, truth values, numbers by one, `min` and `max`, and statements that are left out.
Left out: strings, types, declarations, assertions and `strict=True` (a programmer's mistake), and what only prefetches.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

SWAPPED = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "//": "*",
    "%": "*",
    "**": "*",
    "&": "|",
    "|": "&",
    "<<": ">>",
    ">>": "<<",
    "+=": "-=",
    "-=": "+=",
    "*=": "/=",
    "/=": "*=",
    "|=": "&=",
    "&=": "|=",
    "&&": "||",
    "||": "&&",
    "and": "or",
    "or": "and",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
    "min": "max",
    "max": "min",
    "std::min": "std::max",
    "std::max": "std::min",
    "true": "false",
    "false": "true",
    "True": "False",
    "False": "True",
}


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """Bytes `start` to `end` of a file become `new`; `scope` is the expression or statement around them."""

    path: str
    start: int
    end: int
    new: str
    line: int  # from 1
    before: str  # that line, and the line that it becomes, without indentation
    after: str
    scope: tuple[int, int]
    file_digest: str
    is_statement: bool = False

    @property
    def change(self) -> tuple[str, str, str]:
        """What stays the same when lines above it come and go."""
        return self.path, self.before, self.after

    @property
    def key(self) -> str:
        """A name that stays as long as the file does."""
        return f"{self.file_digest} {self.path}:{self.line}: {self.before} -> {self.after} @{self.start}"

    def rank(self, seed: int) -> str:
        """Return where it comes in a random order."""
        return hashlib.sha256(f"{seed} {self.change} {self.start}".encode()).hexdigest()

    def applied(self, source: bytes) -> bytes:
        """Return the mutated file."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def make_mutation(path: str, source: bytes, start: int, end: int, new: str, **more: Any) -> Mutation:
    """Return a mutation with its line as it was and as it becomes."""
    line_start = source.rfind(b"\n", 0, start) + 1
    line_end = source.find(b"\n", start)
    before = source[line_start:line_end]
    last = min(end, line_end)
    after = source[line_start:start] + new.encode() + source[last:line_end]
    return Mutation(
        path=path,
        start=start,
        end=end,
        new=new,
        line=source.count(b"\n", 0, start) + 1,
        before=before.decode().strip(),
        after=after.decode().strip(),
        file_digest=hashlib.sha256(source).hexdigest()[:12],
        **{"scope": (start, end), **more},
    )
