"""Channels, threads and chunks of a collective, as NCCL sizes them once algorithm and protocol are chosen.

A chunk is what one step of one channel carries; it shrinks with the size for trees and NVLS, so that a pipeline fills.

Source: NVIDIA/nccl v2.27.7-1, src/graph/connect.cc (ncclTopoPostset), src/transport/nvls.cc, src/enqueue.cc
(topoGetAlgoInfo, calcCollChunking), src/include/collectives.h.
"""

from dataclasses import dataclass

from fabrictune.collectives.nccl.tuning.graphs import MAX_CHANNELS, Graphs
from fabrictune.collectives.nccl.tuning.protocols import FACTS, STEPS, Algorithm, Protocol
from fabrictune.collectives.nccl.tuning.settings import NcclSettings
from fabrictune.collectives.nccl.tuning.system import System
from fabrictune.foundation.traces import Operation

NVLS_CHUNK_BYTES = 2**17  # NCCL_NVLS_CHUNKSIZE
MANY_HOSTS_CHUNK_BYTES = 2**16  # of NVLSTree from four hosts on
_NVLS_CHANNELS = {90: 16, 100: 24}
_NVLS_CHANNELS_BETWEEN = {90: 16, 100: 32}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a collective is cut."""

    num_channels: int
    num_threads: int  # of a channel
    chunk_bytes: int  # payload of a step of a channel, for NVLS of each head
    loop_bytes: int  # of the buffer that all channels have under way once


def ring_channels(system: System, graphs: Graphs, settings: NcclSettings) -> int:
    """Return the channels of rings and trees of a communicator."""
    num_channels = min(MAX_CHANNELS, 2 * graphs.ring.num_channels)
    is_fast = system.compute_capability >= 90 and system.num_hosts > 1 and graphs.ring.inside > 45
    if is_fast and num_channels < 16:
        num_channels *= 2
    num_channels = min(num_channels, settings.number("max_channels", MAX_CHANNELS))
    num_channels = max(num_channels, settings.number("min_channels", 1))
    return max(num_channels, nvls_channels(system, graphs, settings))


def nvls_channels(system: System, graphs: Graphs, settings: NcclSettings) -> int:
    """Return the channels of NVLS; 0 without it."""
    if graphs.nvls is None or settings.number("nvls_enable", 2) == 0:
        return 0
    defaults = _NVLS_CHANNELS if system.num_hosts == 1 else _NVLS_CHANNELS_BETWEEN
    num_channels = settings.number("nvls_channels", defaults[system.compute_capability])
    return max(settings.number("min_channels", 1), min(settings.number("max_channels", MAX_CHANNELS), num_channels))


def shape_of(
    system: System,
    graphs: Graphs,
    settings: NcclSettings,
    operation: Operation,
    algorithm: Algorithm,
    protocol: Protocol,
    size_bytes: int,
    *,
    num_channels: int,
    is_forced: bool = False,
) -> Shape:
    """Return the shape of one collective; `is_forced` keeps the number of channels, as a tuner plug-in does."""
    facts = FACTS[protocol]
    threads = facts.max_threads
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        assert graphs.nvls is not None, "NVLS has a graph where it is chosen"
        channels = num_channels if is_forced else nvls_channels(system, graphs, settings)
        chunk = _nvls_chunk(system, settings, algorithm, size_bytes, channels * graphs.nvls.num_channels)
        loop = channels * graphs.nvls.num_channels * chunk
        return Shape(num_channels=channels, num_threads=640, chunk_bytes=chunk, loop_bytes=loop)
    per_thread = facts.bytes_per_thread
    if (algorithm, protocol) == (Algorithm.RING, Protocol.LL):
        per_thread *= system.num_ranks
    channels = num_channels if is_forced else max(1, min(num_channels, size_bytes // (threads * per_thread)))
    while size_bytes < channels * threads * per_thread and threads % 128 == 0:
        threads //= 2
    chunk = _chunk(system, settings, operation, algorithm, protocol, size_bytes, channels)
    parts = system.num_ranks if algorithm == Algorithm.RING and operation != Operation.BROADCAST else 1
    return Shape(
        num_channels=channels, num_threads=max(96, threads), chunk_bytes=chunk, loop_bytes=channels * parts * chunk
    )


def _chunk(
    system: System,
    settings: NcclSettings,
    operation: Operation,
    algorithm: Algorithm,
    protocol: Protocol,
    size_bytes: int,
    num_channels: int,
) -> int:
    facts = FACTS[protocol]
    is_simple = protocol == Protocol.SIMPLE
    buffer = settings.number("buffer_bytes", facts.buffer_bytes) if is_simple else facts.buffer_bytes
    chunk = int(buffer // STEPS * facts.payload_fraction)
    if is_simple and algorithm == Algorithm.RING and operation != Operation.BROADCAST:
        chunk *= STEPS // 2
    if (algorithm, protocol) == (Algorithm.TREE, Protocol.LL128):
        local = system.gpus_per_host
        depth = 1 + (system.num_hosts.bit_length() - 1) + 0.1 * local
        while size_bytes // (num_channels * chunk) < depth * 64 / local and chunk > 2**17:
            chunk //= 2
        while size_bytes // (num_channels * chunk) < depth * 16 / local and chunk > 2**15:
            chunk //= 2
    if algorithm == Algorithm.PAT:
        loops = 32 if operation == Operation.ALL_GATHER else 16
        while chunk * num_channels * loops > size_bytes and chunk > 2**16:
            chunk //= 2
    return chunk


def _nvls_chunk(
    system: System, settings: NcclSettings, algorithm: Algorithm, size_bytes: int, num_concurrent: int
) -> int:
    chunk = settings.number("nvls_chunk_bytes", NVLS_CHUNK_BYTES)
    if algorithm == Algorithm.NVLS:
        steps: tuple[tuple[int, int], ...] = ((64, 2**16), (8, 2**15), (2, 2**14))
    else:
        default = MANY_HOSTS_CHUNK_BYTES if system.num_hosts >= 4 else chunk
        chunk = min(chunk, settings.number("nvls_tree_chunk_bytes", default))
        steps = ((32, 2**18), (16, 2**17), (4, 2**16), (1, 2**15))
    for loops, most in steps:
        if size_bytes < loops * num_concurrent * chunk and chunk > most:
            chunk = most
    return chunk
