"""Protocol buffer messages, field by field, as far as a trace needs them.

Source: protobuf.dev, "Encoding": a field is a tag (number and wire type) and a value.
"""

import struct

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_SMALL = tuple(bytes([value]) for value in range(128))


def varint(value: int) -> bytes:
    """Return a whole number of 64 bits; negative ones as two's complement."""
    if 0 <= value < 128:
        return _SMALL[value]
    value &= 2**64 - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    """Return a field of a whole number."""
    return varint(field << 3 | _VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    """Return a field of a floating-point number."""
    return varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def fixed(field: int, value: int) -> bytes:
    """Return a field of a whole number in eight bytes."""
    return varint(field << 3 | _FIXED64) + struct.pack("<Q", value)


def text(field: int, value: str) -> bytes:
    """Return a field of text."""
    return message(field, value.encode())


def message(field: int, content: bytes) -> bytes:
    """Return a field that is a message, or bytes."""
    return varint(field << 3 | _BYTES) + varint(len(content)) + content
