"""JSON that is too large to hold, value by value: bounded in depth, in digits and in the size of each value.

`stream_json(file)` yields the values that stand under the top object's keys: each entry of a list, or the one value of
any other kind. Only one value is in memory at a time, so a file costs what its largest value costs.

The parser is C (yajl2 in ijson). It ends the process at an integer of more digits than Python converts, and it
keeps a value's text whole until its end. Therefore runs of digits and the length of a value are bounded in the bytes
before it parses them.

Source: RFC 8259 (JSON).
Left out: a number of more than MAX_NUMBER_DIGITS digits is refused inside a text, too.
"""

from collections.abc import Iterator
from decimal import InvalidOperation
from pathlib import Path
from typing import Any, NoReturn

import ijson

from fabrictune.foundation.documents import MAX_DEPTH, MAX_NODES
from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.foreign_files import SPLIT, UNPACKING_ERRORS, Readable

MAX_NUMBER_DIGITS = 256
MAX_VALUE_BYTES = 16 * 2**20  # of text, for one value
CHUNK_BYTES = 2**16
BROKEN = (ijson.JSONError, UnicodeDecodeError, *UNPACKING_ERRORS)  # what damaged files raise

_AS_DIGIT = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
_TOO_LONG = b"0" * (MAX_NUMBER_DIGITS + 1)
_OPENS, _CLOSES = ("start_map", "start_array"), ("end_map", "end_array")


def stream_json(
    file: Readable, path: Path, keys: frozenset[str], *, error: type[FabrictuneError]
) -> Iterator[tuple[str, Any]]:
    """Yield key and value of each object or list under `keys` of the top object, one for each entry of a list.

    Numbers with a fraction are `Decimal`. Raises `error` beyond a limit, and one of BROKEN for what is no JSON.
    """
    text = _BoundedText(file, path, error)
    events = _events(text)
    depth, entry_depth, key = 0, 0, ""
    for kind, value in events:
        if kind in _OPENS:
            is_list = depth == 1 and kind == "start_array"
            if (depth and depth == entry_depth) or (depth == 1 and key in keys and not is_list):
                yield key, _build(kind, events, text)
            else:
                depth += 1
                entry_depth = depth if is_list and key in keys else entry_depth
                text.check_depth(depth)
        elif kind in _CLOSES:
            entry_depth = 0 if depth == entry_depth else entry_depth
            depth -= 1
        elif kind == "map_key" and depth == 1:
            key = value
        if depth <= 2:
            text.begin_value()


def _events(text: "_BoundedText") -> Iterator[tuple[str, Any]]:
    try:
        yield from ijson.basic_parse(text, use_float=False, buf_size=CHUNK_BYTES)
    except InvalidOperation:
        text.refuse("a number whose exponent is too large", "exponents of up to 18 digits")


def _build(kind: str, events: Iterator[tuple[str, Any]], text: "_BoundedText") -> Any:
    """Return the value that begins with an event of `kind`, read to its end."""
    builder = ijson.ObjectBuilder()
    builder.event(kind, None)
    depth, num_nodes = 1, 1
    while depth:
        kind, value = next(events)
        if kind in _OPENS:
            depth += 1
            text.check_depth(depth)
        elif kind in _CLOSES:
            depth -= 1
        num_nodes += 1
        if num_nodes > MAX_NODES:
            text.refuse("one value of more parts than can be used", f"{MAX_NODES:,} parts", next_step=SPLIT)
        builder.event(kind, value)
    return builder.value


class _BoundedText:
    """The bytes that the parser is given; a long number or a long value ends in an error before it is parsed."""

    def __init__(self, file: Readable, path: Path, error: type[FabrictuneError]) -> None:
        self._file, self._path, self._error = file, path, error
        self._num_bytes, self._value_start = 0, 0
        self._tail = b""

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        digits = self._tail + data.translate(_AS_DIGIT)
        if _TOO_LONG in digits:
            self.refuse(f"a number of more than {MAX_NUMBER_DIGITS} digits", f"{MAX_NUMBER_DIGITS} digits")
        self._tail = digits[-MAX_NUMBER_DIGITS:]
        self._num_bytes += len(data)
        if self._num_bytes - self._value_start > MAX_VALUE_BYTES + CHUNK_BYTES:
            self.refuse(f"one value of more than {MAX_VALUE_BYTES} B of text", f"{MAX_VALUE_BYTES} B", next_step=SPLIT)
        return data

    def begin_value(self) -> None:
        """Count the bytes of a value from here."""
        self._value_start = self._num_bytes

    def check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.refuse("values nested too deeply", f"{MAX_DEPTH} levels")

    def refuse(self, found: str, allowed: str, *, next_step: str = "") -> NoReturn:
        where = str(self._path)
        raise self._error(Mistake(where=where, found=found, allowed=allowed, next_step=next_step)) from None
