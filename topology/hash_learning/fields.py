"""Header fields that a learned choice depends on, as far as the observed headers tell."""

from typing import Literal

from fabrictune.topology.hash_learning.headers import BITS_OF, VARIED, bit_vector
from fabrictune.topology.hash_learning.linear_choice import LinearChoice
from fabrictune.topology.hashing.five_tuples import HeaderField

FieldUse = Literal["hashed", "no effect", "unknown"]


def bit_codes(choice: LinearChoice) -> dict[int, int]:
    """Return how each header bit that the observations determine changes the code of the next hop."""
    codes = {bit: choice.code_of(bit_vector(bit)) for field in VARIED for bit in BITS_OF[field]}
    return {bit: code for bit, code in codes.items() if code is not None}


def field_uses(choice: LinearChoice) -> dict[HeaderField, FieldUse]:
    """Return of each field in which flows differ whether the next hop depends on it.

    A field has no effect where enough of its bits were seen changing alone: an index of d bits would leave b bits of a
    field that is well mixed without an effect with a chance of 2^-bd, so eight of bd are asked for. A fold of a field
    may have an effect in bits that were not seen changing.
    """
    codes, least = bit_codes(choice), 8 / max(1, len(choice.functionals))
    uses: dict[HeaderField, FieldUse] = {}
    for field in VARIED:
        own = [codes[bit] for bit in BITS_OF[field] if bit in codes]
        uses[field] = "hashed" if any(own) else "no effect" if len(own) >= least else "unknown"
    return uses
