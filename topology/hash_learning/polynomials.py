"""The polynomial of a learned choice that is a cyclic redundancy check, in a catalogue or not.

A header bit with e bits behind it adds x^(e + w) modulo the polynomial of degree w to the check, and the index is some
consecutive bits of the check. The header ends with the destination port, or with the queue pair where that is hashed.
All polynomials of degree 8 and 16 are tried, in both orders of bits and at every place of the index, which takes no
catalogue; an exclusive-or fold to 8 bits is x^8 + 1. Of degree 32 those of the catalogue are tried.

Left out: widths other than whole bytes, and indexes of bits that are not neighbours.

Source: G. Cook, "Catalogue of parametrised CRC algorithms" (reveng.sourceforge.io), of the 32-bit polynomials.

Shapes: K polynomials, B bits of a check, S vectors of the observed span.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.topology.hash_learning.elimination import Basis
from fabrictune.topology.hash_learning.fields import field_uses
from fabrictune.topology.hash_learning.headers import BITS_OF, NUM_BITS, bit_vector
from fabrictune.topology.hash_learning.linear_choice import LinearChoice

CATALOGUE_32 = (
    0x04C11DB7,
    0x1EDC6F41,
    0x741B8CD7,
    0x32583499,
    0x814141AB,
    0xA833982B,
    0xF4ACFB13,
    0x000000AF,
    0x8001801B,
)
MAX_ACCIDENTS = 0.01  # polynomials that would explain the observations by chance
MAX_VECTORS = 64  # of the span, compared at once


@dataclass(frozen=True, kw_only=True)
class Polynomial:
    """A polynomial, without its highest term, the order in which a byte's bits enter, and the index in the check."""

    degree: int
    terms: int
    is_reflected: bool
    lowest_bit: int  # of the index, in the register as a check that is not reflected has it

    def __str__(self) -> str:
        if self.terms == 1:
            return f"x^{self.degree} + 1 (an exclusive-or fold to {self.degree} bits)"
        order = "least" if self.is_reflected else "most"
        return f"0x{self.terms:0{self.degree // 4}X}, {self.degree} bits, {order} significant bit first"


@dataclass(frozen=True, kw_only=True)
class PolynomialSearch:
    """Polynomials that explain a choice: those of the lowest degree that has any."""

    polynomials: tuple[Polynomial, ...]
    degrees: tuple[int, ...]  # searched; not those of which more than `MAX_ACCIDENTS` would fit by chance


def find_polynomial(choice: LinearChoice) -> PolynomialSearch:
    """Return the polynomials whose checks give the index of a whole choice; none for a choice that is not whole."""
    num_bits = len(choice.functionals)
    num_vectors = min(len(choice.span), MAX_VECTORS)
    degrees: list[int] = []
    for degree, terms in _SEARCHES:
        num_tried = 2 * len(terms) * degree
        if not choice.is_whole or num_tried * 2.0 ** -(num_bits * (num_vectors - num_bits)) > MAX_ACCIDENTS:
            continue
        degrees.append(degree)
        found = tuple(
            polynomial
            for is_reflected in (False, True)
            for polynomial in _explaining(choice, degree, terms, is_reflected=is_reflected)
        )
        if found:
            return PolynomialSearch(polynomials=found, degrees=tuple(degrees))
    return PolynomialSearch(polynomials=(), degrees=tuple(degrees))


_QUEUE_PAIR = (1 << len(BITS_OF["destination_qp"])) - 1
_SEARCHES: tuple[tuple[int, Sequence[int]], ...] = (
    (8, range(1, 1 << 8, 2)),
    (16, range(1, 1 << 16, 2)),
    (32, CATALOGUE_32),
)


def _explaining(choice: LinearChoice, degree: int, terms: Sequence[int], *, is_reflected: bool) -> Iterator[Polynomial]:
    """Yield the polynomials, with the place of the index, whose index changes with headers as the choice does."""
    mask = _bits_with_effect(choice)
    vectors = [vector & mask for vector in choice.span.vectors[:MAX_VECTORS]]
    terms_K = np.array(terms, np.uint64)
    row_KB = _bit_rows(_checks(terms_K, degree, vectors, is_reflected=is_reflected), degree)
    learned = Basis(functional & (1 << len(vectors)) - 1 for functional in choice.functionals)
    is_inside_KB = _remainders(row_KB, learned) == 0
    num_bits = len(choice.functionals)
    for k in np.nonzero(is_inside_KB.sum(axis=1) >= num_bits)[0].tolist():
        for lowest in range(degree):
            places = [(lowest + bit) % degree for bit in range(num_bits)]
            if is_inside_KB[k, places].all() and len(Basis(row_KB[k, places].tolist())) == len(learned):
                yield Polynomial(degree=degree, terms=terms[k], is_reflected=is_reflected, lowest_bit=lowest)


def _bits_with_effect(choice: LinearChoice) -> int:
    """Return the bits of all fields but those that the switch does not hash, which count as zero."""
    uses = field_uses(choice)
    return sum(bit_vector(bit) for field, bits in BITS_OF.items() if uses.get(field) != "no effect" for bit in bits)


def _checks(
    terms_K: NDArray[np.uint64], degree: int, vectors: Sequence[int], *, is_reflected: bool
) -> NDArray[np.uint64]:
    """Return the check of each vector under each polynomial, shape (K, S)."""
    has_queue_pair = any(vector & _QUEUE_PAIR for vector in vectors)
    first = 0 if has_queue_pair else _QUEUE_PAIR.bit_length()
    top, mask = np.uint64(degree - 1), np.uint64((1 << degree) - 1)
    check_KS = np.zeros((len(terms_K), len(vectors)), np.uint64)
    power_K = terms_K.copy()  # x^w, which the header's last bit adds
    for exponent in range(first, NUM_BITS):
        bit = exponent ^ 7 if is_reflected else exponent
        for place, vector in enumerate(vectors):
            if vector >> bit & 1:
                check_KS[:, place] ^= power_K
        power_K = (power_K << np.uint64(1) & mask) ^ (power_K >> top) * terms_K
    return check_KS


def _bit_rows(check_KS: NDArray[np.uint64], degree: int) -> NDArray[np.uint64]:
    """Return each bit of the checks over the vectors, as a number with a bit for each vector; shape (K, B)."""
    row_KB = np.zeros((len(check_KS), degree), np.uint64)
    for place, check_K in enumerate(check_KS.T):
        for bit in range(degree):
            row_KB[:, bit] |= (check_K >> np.uint64(bit) & np.uint64(1)) << np.uint64(place)
    return row_KB


def _remainders(row_KB: NDArray[np.uint64], learned: Basis) -> NDArray[np.uint64]:
    """Return what is left of each row after elimination, 0 where it is in the space."""
    left_KB = row_KB.copy()
    for vector in learned.vectors:
        has_pivot_KB = left_KB >> np.uint64(vector.bit_length() - 1) & np.uint64(1)
        left_KB ^= has_pivot_KB * np.uint64(vector)
    return left_KB
