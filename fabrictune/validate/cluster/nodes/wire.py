"""Orders and answers as lines of JSON, the same over SSH, a process's pipes or TCP.

An order is `{"number": 3, "do": "send", ...}`; its answer has the number and `result` or `error`. An empty line says
that the other end is still there.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

MAX_LINE_BYTES = 64 * 2**20  # of one order or answer: a node's reading is the longest
STILL_THERE = b"\n"
SILENCE_S = 60.0  # after which a node takes its controller for gone
BEAT_S = 10.0


class WireError(Exception):
    """What came is no line of the protocol."""


def encode(values: Mapping[str, Any]) -> bytes:
    """Return values as a line."""
    return json.dumps(values).encode() + b"\n"


class LineReader:
    """Cuts bytes into lines, at most MAX_LINE_BYTES each."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the values of each line that is now whole; raises WireError."""
        self._rest += data
        while (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            if line.strip():
                yield _parse(line)
        if len(self._rest) > MAX_LINE_BYTES:
            raise WireError(f"a line of more than {MAX_LINE_BYTES:,} bytes")


def _parse(line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise WireError(f"no JSON: {line[:60].decode(errors='replace')!r}") from None
    if not isinstance(values, dict):
        raise WireError("JSON that is no object")
    return values
