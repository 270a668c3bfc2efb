"""Texts: a column of text in which few texts differ, each once and a number a row.

A trace of millions of requests names a few axes, policies and layers. As Python objects its texts cost a reference a
row and column; so they cost four bytes, and nothing a row where all are one text.

Shapes: N rows, R of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Texts(Sequence[str]):
    """N texts; equal to any sequence of the same."""

    vocabulary: tuple[str, ...]
    place_N: NDArray[np.int32]  # in the vocabulary

    @classmethod
    def constant(cls, text: str, num_rows: int) -> Self:
        """Return one text for every row."""
        return cls(vocabulary=(text,), place_N=np.broadcast_to(np.int32(0), num_rows))

    @classmethod
    def of(cls, texts: "TextColumn") -> "Texts":
        """Return the same texts, each held once."""
        if isinstance(texts, Texts):
            return texts
        places: dict[str, int] = {}
        place_N = np.fromiter((places.setdefault(text, len(places)) for text in texts), np.int32, len(texts))
        return cls(vocabulary=tuple(places), place_N=place_N)

    @classmethod
    def of_arrow(cls, column: Any) -> Self:
        """Return an Arrow column of text, in dictionaries or not, without empty cells."""
        places: dict[str, int] = {}
        parts = [np.zeros(0, np.int32)]
        for chunk in column.chunks:
            encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
            texts = encoded.dictionary.to_pylist()
            of_chunk = np.array([places.setdefault(text, len(places)) for text in texts], np.int32)
            parts.append(of_chunk[encoded.indices.to_numpy()])
        vocabulary = tuple(places)
        if len(vocabulary) == 1:
            return cls.constant(vocabulary[0], sum(map(len, parts)))
        return cls(vocabulary=vocabulary, place_N=np.concatenate(parts))

    def to_arrow(self) -> Any:
        """Return the texts written out as a `pyarrow.Array`."""
        import pyarrow as pa

        return pa.array(self.vocabulary, pa.string()).take(pa.array(self.place_N, pa.int32()))

    def take(self, row_R: NDArray[np.integer]) -> "Texts":
        """Return the texts of some rows, in their order."""
        return Texts(vocabulary=self.vocabulary, place_N=self.place_N[row_R])

    @overload
    def __getitem__(self, row: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> "Texts": ...
    def __getitem__(self, row: SupportsIndex | slice) -> "str | Texts":
        if isinstance(row, slice):
            return Texts(vocabulary=self.vocabulary, place_N=self.place_N[row])
        return self.vocabulary[int(self.place_N[row])]

    def __len__(self) -> int:
        return len(self.place_N)

    def __iter__(self) -> Iterator[str]:
        return map(self.vocabulary.__getitem__, self.place_N.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(str.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Texts({len(self)} rows of {len(self.vocabulary)} texts)"


TextColumn = tuple[str, ...] | Texts
