"""Linear algebra over GF(2): vectors are integers, one bit a coordinate, and addition is exclusive or."""

from collections.abc import Iterable


class Basis:
    """A basis of a space in reduced form: each vector has a bit, its pivot, that no other vector has."""

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        self._vector_of: dict[int, int] = {}  # by pivot
        for vector in vectors:
            self.add(vector)

    def __len__(self) -> int:
        return len(self._vector_of)

    def __contains__(self, vector: int) -> bool:
        return not self.remainder(vector)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basis) and self.vectors == other.vectors

    __hash__ = None  # type: ignore[assignment]

    @property
    def vectors(self) -> tuple[int, ...]:
        """The vectors, the highest pivot first."""
        return tuple(self._vector_of[pivot] for pivot in sorted(self._vector_of, reverse=True))

    def add(self, vector: int) -> bool:
        """Add a vector; returns whether it was not in the space."""
        vector = self.remainder(vector)
        if not vector:
            return False
        pivot = vector.bit_length() - 1
        for other, existing in self._vector_of.items():
            if existing >> pivot & 1:
                self._vector_of[other] = existing ^ vector
        self._vector_of[pivot] = vector
        return True

    def remainder(self, vector: int) -> int:
        """Return what is left of a vector after elimination, 0 where it is in the space."""
        for pivot, existing in self._vector_of.items():
            if vector >> pivot & 1:
                vector ^= existing
        return vector

    def coordinates(self, vector: int) -> int | None:
        """Return which of `vectors` add up to a vector, the first one as bit 0; None where none do."""
        if vector not in self:
            return None
        pivots = sorted(self._vector_of, reverse=True)
        return sum(1 << place for place, pivot in enumerate(pivots) if vector >> pivot & 1)


def nullspace(rows: Iterable[int], num_columns: int) -> tuple[int, ...]:
    """Return a basis of the vectors that every row is orthogonal to."""
    reduced = Basis(rows)
    pivot_of = {vector.bit_length() - 1: vector for vector in reduced.vectors}
    return tuple(
        1 << free | sum(1 << pivot for pivot, vector in pivot_of.items() if vector >> free & 1)
        for free in range(num_columns)
        if free not in pivot_of
    )


def parity(vector: int) -> int:
    """Return the sum of a vector's coordinates."""
    return vector.bit_count() & 1
