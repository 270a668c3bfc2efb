"""Fields of many Protocol Buffers messages at once, as columns.

A message is a sequence of fields, each with a number, a wire type and a value. All messages are read in step: the first
field of each, then the second, until the last has ended. What is rare is left to the library: groups, numbers of three
bytes, values of ten, and the few messages that are much longer than the others. They are marked as odd.

Source: Protocol Buffers, "Encoding" (varints, wire types, packed repeated fields).

Shapes: B bytes, M messages, A messages that go on, F fields, R ranges of bytes, V values.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray

FEW = 512  # messages in step for which the library is faster
MAX_VARINT_BYTES = 9  # of 63 bits; ten bytes are those of negative numbers

Bytes = NDArray[np.uint8]


class Wire(IntEnum):
    """Wire types."""

    VARINT = 0
    EIGHT_BYTES = 1
    LENGTH = 2
    FOUR_BYTES = 5


@dataclass(frozen=True, kw_only=True)
class Fields:
    """F fields; those of one message in its order, though not one after another."""

    message_F: IntArray
    number_F: IntArray
    wire_F: IntArray
    value_F: IntArray  # of a varint
    begin_F: IntArray  # of the content behind a length, in the bytes
    end_F: IntArray

    def take(self, row_R: IntArray | BoolArray) -> "Fields":
        """Return some of the fields, by their rows or by whether each is one."""
        return Fields(**{name: column[row_R] for name, column in vars(self).items()})


def read_fields(data_B: Bytes, begin_M: IntArray, end_M: IntArray, *, few: int = FEW) -> tuple[Fields, BoolArray]:
    """Return the fields of messages that lie between two places each, and which messages are odd.

    The fields of an odd message are incomplete.
    """
    is_odd_M = np.zeros(len(begin_M), bool)
    parts = [np.zeros((6, 0), np.int64)]
    row_A, at_A = np.arange(len(begin_M)), begin_M
    while True:
        goes_on_A = at_A < end_M[row_A]
        row_A, at_A = row_A[goes_on_A], at_A[goes_on_A]
        if len(row_A) <= few:
            is_odd_M[row_A] = True
            break
        fields_6A, next_A, is_right_A = _next_fields(data_B, at_A, end_M[row_A])
        is_odd_M[row_A[~is_right_A]] = True
        row_A, at_A = row_A[is_right_A], next_A[is_right_A]
        fields_6A = fields_6A[:, is_right_A]
        fields_6A[0] = row_A
        parts.append(fields_6A)
    return Fields(**dict(zip(Fields.__annotations__, np.concatenate(parts, axis=1), strict=True))), is_odd_M


def _next_fields(data_B: Bytes, at_A: IntArray, end_A: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the columns of the field at each place, where the next begins, and whether it is one that is read."""
    tag_A, at_A, is_right_A = varints(data_B, at_A, end_A)
    number_A, wire_A = tag_A >> 3, tag_A & 7
    is_right_A &= (number_A > 0) & (tag_A < 2**14)
    value_A, after_A, is_whole_A = varints(data_B, at_A, end_A)
    has_length_A = wire_A == Wire.LENGTH
    fixed_A = 8 * (wire_A == Wire.EIGHT_BYTES) + 4 * (wire_A == Wire.FOUR_BYTES)
    is_fixed_A = fixed_A > 0
    is_right_A &= (wire_A == Wire.VARINT) | has_length_A | is_fixed_A
    is_right_A &= is_whole_A | is_fixed_A
    begin_A = np.where(is_fixed_A, at_A, after_A)
    room_A = end_A - begin_A
    length_A = np.where(has_length_A, value_A, fixed_A)
    is_right_A &= length_A <= room_A
    next_A = begin_A + np.minimum(length_A, np.maximum(room_A, 0))
    return np.stack([number_A, number_A, wire_A, value_A, begin_A, next_A]), next_A, is_right_A


def varints(data_B: Bytes, at_R: IntArray, end_R: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the varint at each place, where it ends, and whether it ends in time."""
    last = len(data_B) - 1
    byte_R = data_B[np.minimum(at_R, last)]
    value_R, next_R = (byte_R & 0x7F).astype(np.int64), at_R + 1
    is_right_R = at_R < end_R
    more = np.flatnonzero((byte_R >= 0x80) & is_right_R)
    for place in range(1, MAX_VARINT_BYTES):
        if not len(more):
            return value_R, next_R, is_right_R
        at = at_R[more] + place
        byte = data_B[np.minimum(at, last)]
        value_R[more] |= (byte & 0x7F).astype(np.int64) << (7 * place)
        next_R[more] += 1
        is_right_R[more] = at < end_R[more]
        more = more[(byte >= 0x80) & is_right_R[more]]
    is_right_R[more] = False
    return value_R, next_R, is_right_R


def packed_varints(data_B: Bytes, begin_R: IntArray, end_R: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the varints that fill ranges of bytes, the range of each, and which ranges they do fill."""
    length_R = end_R - begin_R
    range_B = np.repeat(np.arange(len(begin_R)), length_R)
    byte_B = data_B[np.arange(length_R.sum()) + np.repeat(begin_R - np.cumsum(length_R) + length_R, length_R)]
    ends_B = byte_B < 0x80
    is_right_R = np.ones(len(begin_R), bool)
    is_last_B = np.ones(len(range_B), bool)
    is_last_B[:-1] = range_B[1:] != range_B[:-1]
    is_right_R[range_B[is_last_B & ~ends_B]] = False
    first_V = np.flatnonzero(np.concatenate([[True], (ends_B | is_last_B)[:-1]])) if len(byte_B) else np.zeros(0, int)
    size_V = np.diff(np.append(first_V, len(byte_B)))
    is_right_R[range_B[first_V[size_V > MAX_VARINT_BYTES]]] = False
    place_B = np.minimum(np.arange(len(byte_B)) - np.repeat(first_V, size_V), MAX_VARINT_BYTES - 1)
    part_B = (byte_B & 0x7F).astype(np.int64) << (7 * place_B)
    value_V = np.bitwise_or.reduceat(part_B, first_V) if len(first_V) else part_B
    return value_V, range_B[first_V], is_right_R
