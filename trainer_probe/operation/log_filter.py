"""The lines of ranks' output that matter: those with a keyword go to the driver, the last ones stay for reports.

Output is unbounded and may repeat itself for hours, so that everything here is bounded: a line's length, the lines of
one shape (digits do not count) and all lines between two heartbeats, and the ring of last lines. What is left out is
counted. Secrets are redacted before a line leaves the filter.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable

from fabrictune.foundation.redaction import redact_secrets
from fabrictune.foundation.visible_text import printable

KEYWORDS = (
    "error",
    "exception",
    "traceback",
    "fatal",
    "failed",
    "failure",
    "refused",
    "timeout",
    "timed out",
    "nan",
    "inf",
    "corrupt",
    "out of memory",
    "oom-kill",
    "killed process",
    "no space left",
    "segmentation fault",
    "illegal memory access",
    "bus error",
    "nccl warn",
    "watchdog",
    "xid",
    "edac",
    "mce",
    "machine check",
    "hardware error",
    "mlx5_core",
    "link down",
)
MAX_LINE_LETTERS = 400
MAX_LINES = 50  # between two calls of `take_matches`
MAX_OF_SHAPE = 3
MAX_SHAPES = 1000
NUM_LAST = 100
_DIGITS = re.compile(r"(?:0x[0-9a-f]+|\d+)", re.IGNORECASE)


class LogFilter:
    """A filter of one node's lines. Words are matched whole and in any case; `keywords` are further ones."""

    def __init__(self, keywords: Iterable[str] = ()) -> None:
        words = "|".join(re.escape(word) for word in (*KEYWORDS, *keywords) if word)
        # The names of exceptions end in Error and Exception.
        self._pattern = re.compile(rf"(?:\b|_)(?:{words})(?:\b|_)|(?:error|exception)\b", re.IGNORECASE)
        self._matches: list[str] = []
        self._num_of_shape = Counter[str]()
        self._num_dropped = 0
        self._last = deque[tuple[str, str, int]](maxlen=NUM_LAST)  # source, beginning, letters

    def add(self, line: str, source: str = "") -> None:
        """Take a line that a process has printed; `source`, such as "rank 3", is put before it."""
        text = line[: 2 * MAX_LINE_LETTERS].strip()
        if not text:
            return
        self._last.append((source, text, len(line)))
        if self._pattern.search(text):
            self._keep(source, text, len(line))

    def take_matches(self) -> tuple[tuple[str, ...], int]:
        """Return the lines with keywords since the last call, and how many more there were."""
        taken = tuple(self._matches), self._num_dropped
        self._matches, self._num_dropped = [], 0
        self._num_of_shape.clear()
        return taken

    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines, with keywords or without."""
        return tuple(_shown(*line) for line in self._last)

    def _keep(self, source: str, text: str, num_letters: int) -> None:
        shape = _DIGITS.sub("#", text)
        is_new = shape not in self._num_of_shape
        if (is_new and len(self._num_of_shape) >= MAX_SHAPES) or len(self._matches) >= MAX_LINES:
            self._num_dropped += 1
            return
        self._num_of_shape[shape] += 1
        if self._num_of_shape[shape] > MAX_OF_SHAPE:
            self._num_dropped += 1
        else:
            self._matches.append(_shown(source, text, num_letters))


def _shown(source: str, text: str, num_letters: int) -> str:
    """Return a line as others see it: without secrets and control characters, cut, behind its source."""
    text = redact_secrets(printable(text))
    if len(text) > MAX_LINE_LETTERS:
        text = f"{text[:MAX_LINE_LETTERS]}... ({num_letters:,} letters)"
    return f"{source}: {text}" if source else text
