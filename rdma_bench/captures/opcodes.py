"""Meanings of the 256 opcodes of the base transport header, as tables to index with a column.

The high three bits are the transport (0 is the reliable connection), the low five the operation; CNP is separate.

Source: InfiniBand Architecture Specification vol. 1, 9.2: opcodes and their extended headers; annex A17: CNP.
Left out: reliable datagrams.
"""

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.rocev2 import AETH_BYTES, CNP_RESERVED_BYTES, IMMEDIATE_BYTES, RETH_BYTES, Opcode

ATOMIC_BYTES = 28
ATOMIC_ACK_BYTES = 8
DATAGRAM_BYTES = 8  # DETH
XRC_BYTES = 4

NUM_OPCODES = 256
RELIABLE, XRC = 0x00, 0xA0
TRANSPORTS = {  # high three bits: prefix of the name, bytes of the transport's own header
    RELIABLE: ("", 0),
    0x20: ("UC_", 0),
    0x60: ("UD_", DATAGRAM_BYTES),
    XRC: ("XRC_", XRC_BYTES),
}
OPERATIONS = (  # low five bits: name, bytes between the headers above and the payload
    ("SEND_FIRST", 0),
    ("SEND_MIDDLE", 0),
    ("SEND_LAST", 0),
    ("SEND_LAST_WITH_IMMEDIATE", IMMEDIATE_BYTES),
    ("SEND_ONLY", 0),
    ("SEND_ONLY_WITH_IMMEDIATE", IMMEDIATE_BYTES),
    ("WRITE_FIRST", RETH_BYTES),
    ("WRITE_MIDDLE", 0),
    ("WRITE_LAST", 0),
    ("WRITE_LAST_WITH_IMMEDIATE", IMMEDIATE_BYTES),
    ("WRITE_ONLY", RETH_BYTES),
    ("WRITE_ONLY_WITH_IMMEDIATE", RETH_BYTES + IMMEDIATE_BYTES),
    ("READ_REQUEST", RETH_BYTES),
    ("READ_RESPONSE_FIRST", AETH_BYTES),
    ("READ_RESPONSE_MIDDLE", 0),
    ("READ_RESPONSE_LAST", AETH_BYTES),
    ("READ_RESPONSE_ONLY", AETH_BYTES),
    ("ACKNOWLEDGE", AETH_BYTES),
    ("ATOMIC_ACKNOWLEDGE", AETH_BYTES + ATOMIC_ACK_BYTES),
    ("COMPARE_AND_SWAP", ATOMIC_BYTES),
    ("FETCH_AND_ADD", ATOMIC_BYTES),
    ("RESERVED", 0),
    ("SEND_LAST_WITH_INVALIDATE", IMMEDIATE_BYTES),
    ("SEND_ONLY_WITH_INVALIDATE", IMMEDIATE_BYTES),
)
_RESPONSES = range(13, 19)  # rows of OPERATIONS that the responder sends


def opcode_name(opcode: int) -> str:
    """Return the opcode's name: `WRITE_ONLY`, `UD_SEND_ONLY`, or its number where it has none."""
    if opcode == Opcode.CNP:
        return "CNP"
    transport, operation = opcode & 0xE0, opcode & 0x1F
    if transport not in TRANSPORTS or operation >= len(OPERATIONS):
        return f"0x{opcode:02X}"
    return TRANSPORTS[transport][0] + OPERATIONS[operation][0]


def _extended_bytes() -> IntArray:
    table = np.zeros(NUM_OPCODES, np.int64)
    for transport, (_, own_bytes) in TRANSPORTS.items():
        table[transport : transport + len(OPERATIONS)] = [own_bytes + num_bytes for _, num_bytes in OPERATIONS]
    table[Opcode.CNP] = CNP_RESERVED_BYTES
    table.setflags(write=False)
    return table


def _is_request() -> BoolArray:
    table = np.zeros(NUM_OPCODES, bool)
    for transport in (RELIABLE, XRC):
        table[transport : transport + len(OPERATIONS)] = [row not in _RESPONSES for row in range(len(OPERATIONS))]
    table.setflags(write=False)
    return table


EXTENDED_BYTES = _extended_bytes()  # between the base header and the payload
IS_REQUEST = _is_request()  # sent by the requester of a reliable connection, who numbers its packets in order
