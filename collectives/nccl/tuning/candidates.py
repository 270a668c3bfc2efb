"""Candidates of NCCL's tuning model: algorithms and protocols with latency and bandwidth, or the reason against them.

`latency_us` and `gb_per_s` are what NCCL_DEBUG_SUBSYS=TUNING prints: the bandwidth is the algorithm's, bytes of the
buffer over time. A candidate that cannot run says why.

Source: NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel, in the versions of `constants`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabrictune.collectives.nccl.tuning.constants import TREE_CORRECTION, Medium
from fabrictune.collectives.nccl.tuning.model import SCATTERED, Model
from fabrictune.collectives.nccl.tuning.protocols import Algorithm, Protocol
from fabrictune.foundation.traces import Operation

_T, _R, _N, _NT, _P = Algorithm.TREE, Algorithm.RING, Algorithm.NVLS, Algorithm.NVLS_TREE, Algorithm.PAT
_COLLNET = (Algorithm.COLLNET_DIRECT, Algorithm.COLLNET_CHAIN)
_COVERED: Mapping[Operation, frozenset[Algorithm]] = {
    Operation.ALL_REDUCE: frozenset({_T, _R, _N, _NT, *_COLLNET}),
    Operation.ALL_GATHER: frozenset({_R, _N, _P, Algorithm.COLLNET_DIRECT}),
    Operation.REDUCE_SCATTER: frozenset({_R, _N, _P, Algorithm.COLLNET_DIRECT}),
    Operation.BROADCAST: frozenset({_R}),
}
MAX_NVLS_SCATTERED = 32  # GPUs a host, NCCL_MAX_NVLS_ARITY


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An algorithm and a protocol; `reason` says why they cannot run, and is empty where they can."""

    algorithm: Algorithm
    protocol: Protocol
    latency_us: float = 0.0
    gb_per_s: float = 0.0
    reason: str = ""

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.algorithm} {self.protocol}"


def candidates_of(model: Model, operation: Operation) -> tuple[Candidate, ...]:
    """Return every algorithm and protocol of an operation, in NCCL's order."""
    pairs = ((algorithm, protocol) for algorithm in Algorithm for protocol in Protocol)
    return tuple(_candidate(model, operation, algorithm, protocol) for algorithm, protocol in pairs)


def time_us(model: Model, candidate: Candidate, operation: Operation, size_bytes: int) -> float:
    """Return the time that NCCL compares; a larger one for an algorithm that a size suits badly."""
    bandwidth, latency = candidate.gb_per_s, candidate.latency_us
    place = (size_bytes >> 6).bit_length() - 1
    if operation == Operation.ALL_REDUCE and candidate.algorithm == _T:
        factors = TREE_CORRECTION[candidate.protocol]
        bandwidth *= factors[place] if 0 <= place < len(factors) else 1.0
    is_plateau = (candidate.algorithm, candidate.protocol) == (_R, Protocol.SIMPLE) and model.system.num_hosts > 1
    share = size_bytes // (model.num_channels * model.system.num_ranks)
    if is_plateau and operation == Operation.ALL_REDUCE and share >= 64:
        latency *= 1.9 if model.system.compute_capability < 80 else 1.4
    return latency + size_bytes / (1000 * bandwidth)


def _candidate(model: Model, operation: Operation, algorithm: Algorithm, protocol: Protocol) -> Candidate:
    reason = next(_reasons(model, operation, algorithm, protocol), "")
    if reason:
        return Candidate(algorithm=algorithm, protocol=protocol, reason=reason)
    bus = model.bus_gb_per_s(operation, algorithm, protocol)
    return Candidate(
        algorithm=algorithm,
        protocol=protocol,
        latency_us=_latency_us(model, operation, algorithm, protocol),
        gb_per_s=bus * _buffers_per_bus(model, operation, algorithm),
    )


def _reasons(model: Model, operation: Operation, algorithm: Algorithm, protocol: Protocol) -> Iterator[str]:
    system, settings = model.system, model.settings
    if algorithm not in _COVERED[operation]:
        yield "not of this operation"
    if algorithm in _COLLNET:
        yield "no CollNet plug-in (SHARP)"
    if algorithm not in (_T, _R) and protocol != Protocol.SIMPLE:
        yield "Simple alone"
    if algorithm in (_N, _NT):
        if model.graphs.nvls is None:
            yield "no NVLink SHARP: Hopper or later, NVSwitch, three GPUs a host"
        elif model.graphs.nvls.num_channels < 2:
            yield "NVLink SHARP needs two heads, GPUs with a NIC of their own"
        elif settings.number("nvls_enable", 2) == 0:
            yield "NCCL_NVLS_ENABLE=0"
        if algorithm == _N and system.num_hosts > 1:
            yield "several hosts need CollNet"
        if operation in SCATTERED and system.gpus_per_host > MAX_NVLS_SCATTERED:
            yield f"more than {MAX_NVLS_SCATTERED} GPUs a host"
        if algorithm == _NT and system.num_hosts == 1:
            yield "one host"
    if algorithm == _P and not _is_pat_enabled(model):
        yield "several GPUs a host"
    if not settings.allows(operation, algorithm):
        yield "NCCL_ALGO"
    if not settings.allows_protocol(operation, protocol):
        yield "NCCL_PROTO"
    if protocol == Protocol.LL128 and not settings.names_protocols(operation) and not _keeps_lines_whole(model):
        yield "PCIe does not keep 128-byte stores whole"


def _is_pat_enabled(model: Model) -> bool:
    wanted = model.settings.number("pat_enable", 2)
    return bool(wanted) if wanted != 2 else model.system.gpus_per_host == 1 and model.system.num_hosts > 1


def _keeps_lines_whole(model: Model) -> bool:
    return model.system.nvlink > 0 or model.system.gpus_per_host == 1


def _buffers_per_bus(model: Model, operation: Operation, algorithm: Algorithm) -> float:
    """Return the algorithm's bandwidth as a share of the bus bandwidth."""
    if algorithm != _R and operation in SCATTERED:
        return 1.0
    if algorithm in (_N, _NT) and model.constants.nvls_efficiency is None:
        return 5 / 6
    if algorithm in (_R, _N, _NT):
        return model.system.num_ranks / model.num_steps(operation)
    return 0.5


def _latency_us(model: Model, operation: Operation, algorithm: Algorithm, protocol: Protocol) -> float:
    base = model.constants.base(algorithm, protocol)
    inside = model.constants.step(model.medium, algorithm, protocol)
    between = model.between_us(algorithm, protocol)
    between += model.system.transport.tuner_us * (2 if protocol == Protocol.SIMPLE else 1)
    hosts, local = model.system.num_hosts, model.system.gpus_per_host
    levels = hosts.bit_length() - 1
    if algorithm == _R:
        return base + _ring_latency_us(model, operation, protocol, inside, between)
    if algorithm == _T:
        return base + 2 * ((local - 1) * inside + levels * between)
    if algorithm == _N:
        return inside
    if algorithm == _NT:
        return base + inside + 2 * levels * between
    return base + levels * between / 3.5 + model.system.num_ranks * 2.8


def _ring_latency_us(model: Model, operation: Operation, protocol: Protocol, inside: float, between: float) -> float:
    hosts = model.system.num_hosts
    if operation == Operation.BROADCAST:
        medium = Medium.NETWORK if hosts > 1 else model.medium
        return model.constants.step(medium, _R, protocol)
    num_steps = model.num_steps(operation)
    num_between = 0 if hosts == 1 else (2 if operation == Operation.ALL_REDUCE else 1) * (hosts - 1)
    return (num_steps - num_between) * max(inside, model.post_us(protocol)) + num_between * between
