"""Algorithms and protocols of NCCL, with what each protocol sends beside the data.

LL sends 8 bytes of data with 8 of flags, so that 8-byte stores alone order them; LL128 sends 120 bytes with 8, which
needs a path that keeps 128-byte stores whole; Simple sends data alone and synchronizes by steps.

Source: NVIDIA/nccl v2.27.7-1: src/include/device.h, src/include/comm.h, src/init.cc (buffer sizes).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

STEPS = 8  # NCCL_STEPS: slots of a connection's buffer
SIMPLE_BUFFER_BYTES = 2**22  # NCCL_BUFFSIZE


class Algorithm(StrEnum):
    """An algorithm, by the name that NCCL_ALGO takes; NCCL breaks ties in this order."""

    TREE = "Tree"
    RING = "Ring"
    COLLNET_DIRECT = "CollNetDirect"
    COLLNET_CHAIN = "CollNetChain"
    NVLS = "NVLS"
    NVLS_TREE = "NVLSTree"
    PAT = "PAT"


class Protocol(StrEnum):
    """A protocol, by the name that NCCL_PROTO takes; NCCL breaks ties in this order."""

    LL = "LL"
    LL128 = "LL128"
    SIMPLE = "Simple"


@dataclass(frozen=True, kw_only=True)
class ProtocolFacts:
    """What a protocol sends, buffers and occupies."""

    payload_fraction: float  # of the bytes in a buffer and on the wire
    buffer_bytes: int  # of a connection, flags included
    max_threads: int  # of a channel
    bytes_per_thread: int  # below which NCCL takes fewer channels and threads


FACTS: Mapping[Protocol, ProtocolFacts] = {
    Protocol.LL: ProtocolFacts(
        payload_fraction=1 / 2, buffer_bytes=8 * 512 * STEPS * 16, max_threads=512, bytes_per_thread=8
    ),
    Protocol.LL128: ProtocolFacts(
        payload_fraction=15 / 16, buffer_bytes=120 * 640 * STEPS * 8, max_threads=640, bytes_per_thread=8
    ),
    Protocol.SIMPLE: ProtocolFacts(
        payload_fraction=1.0, buffer_bytes=SIMPLE_BUFFER_BYTES, max_threads=512, bytes_per_thread=64
    ),
}
