"""The text of a PyTorch profile without the events that cannot be requests.

A profile is mostly operators and kernels that do not communicate, and a parser of JSON takes a minute for the gigabyte
that 50 MB unpack to. `EventFilter` looks for the words that a request has, and hands on the events around them and all
that is no event; the parser behind it judges what is left.

The profiler writes each event on lines of its own, `},` and on the next line `{"ph": `. In JSON that is never inside a
string, since the quote would end the string; and it is at one depth where it is always the same bytes, spaces included.
An escape `\\u`, in which a word may be hidden, counts as a word. What is left out is not looked at, so that damage
there goes unnoticed; a profile on one line is handed on whole.
"""

import re

from fabrictune.foundation.foreign_files import Readable

BLOCK_BYTES = 2**20
_WORDS = (b"Collective name", b"record_param_comms", b"nccl", b"rccl", b"\\u")
_FIRST = re.compile(rb'"traceEvents"\s*+:\s*+\[(\s*+\{\s*+"ph"\s*+:)')
_LONGEST_FIRST = 256


class EventFilter:
    """Reads a profile's text, less the events that name no collective."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._left, self._ready = b"", b""  # read and not yet looked at; to be handed on
        self._between = b""  # events: the end of one and the beginning of the next
        self._has_first = self._passes_on = self._is_over = False

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, b"" at the end."""
        while not self._ready and not self._is_over:
            self._ready = self._next()
        end = len(self._ready) if size < 0 else size
        data, self._ready = self._ready[:end], self._ready[end:]
        return data

    def _next(self) -> bytes:
        """Return what is kept of the next block; an event that it cuts is looked at with the block behind."""
        block = self._file.read(BLOCK_BYTES)
        self._is_over = not block
        self._left += block
        kept = []
        if not self._between:
            kept.append(self._to_first())
        if self._between and not self._has_first and not self._passes_on:
            kept.append(self._to_second())
        if self._has_first:
            end = self._left.rfind(self._between) + 1
            kept.append(self._requests(self._left, end))
            self._left = self._left[end:]
        if self._passes_on or self._is_over:
            kept.append(self._cut(len(self._left)))
        return b"".join(kept)

    def _to_first(self) -> bytes:
        """Return what comes before the first event, whose beginning is that of all."""
        first = _FIRST.search(self._left)
        if not first:
            return self._cut(len(self._left) - _LONGEST_FIRST)
        self._between, self._passes_on = b"}," + first[1], b"\n" not in first[1].partition(b"{")[0]
        return self._cut(first.end())

    def _to_second(self) -> bytes:
        """Return the first event, which no comma precedes."""
        end = self._left.find(self._between) + 1
        self._has_first = end > 0
        return self._cut(end or len(self._left) - len(self._between))

    def _cut(self, end: int) -> bytes:
        """Take away the beginning of what is left, and return it."""
        text, self._left = self._left[: max(end, 0)], self._left[max(end, 0) :]
        return text

    def _requests(self, text: bytes, end: int) -> bytes:
        """Return the events of text[:end] that have one of the words; it is from behind one event to behind another."""
        kept: list[bytes] = []
        begin = 0
        places = {word: text.find(word, 0, end) for word in _WORDS}
        while found := [place for place in places.values() if place >= 0]:
            start = max(begin, text.rfind(self._between, begin, min(found)) + 1)
            begin = text.find(self._between, min(found), end - 1 + len(self._between)) + 1 or end
            kept.append(text[start:begin])
            for word, place in places.items():
                if 0 <= place < begin:
                    places[word] = text.find(word, begin, end)
        return b"".join(kept)
