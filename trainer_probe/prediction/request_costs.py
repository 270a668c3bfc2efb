"""Expected durations of requests on a cluster, by a hardware profile.

A collective inside a host takes a latency and its bytes over the rate that collectives reach over NVLink. Across hosts
it is a ring: a latency for each host that it goes to, and its bytes over the NICs of the members that a host has, or
over NVLink where that is slower. An all-to-all sends each member its part on the way that leads to it. A message takes
a latency and its bytes over one NIC, or over NVLink inside a host. An all-reduce is a reduce-scatter and a gather.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009.
Left out: trees, which small all-reduces take; links that several requests share.
"""

from fabrictune.foundation.traces import Operation
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.planning.volumes import sent_bytes
from fabrictune.trainer_probe.prediction.program import ProgramRequest

_MESSAGES = frozenset({Operation.SEND, Operation.RECEIVE})


def expected_s(request: ProgramRequest, profile: HardwareProfile) -> float:
    """Return the expected seconds of a request that shares its links with none."""
    if len(request.members) == 1:
        return 0.0
    if request.kind in _MESSAGES:
        return _message_s(request, profile)
    num_bytes = sent_bytes(request.kind, len(request.members), request.num_bytes)
    hosts = _hosts(request, profile)
    num_rounds = 2 if request.kind == Operation.ALL_REDUCE else 1
    latency_s = profile.nvlink.latency_ps / PS_PER_S
    if len(hosts) == 1:
        return num_rounds * latency_s + num_bytes / profile.nvlink.collective_bytes_per_s
    num_own = sum(rank // profile.host.num_gpus == request.rank // profile.host.num_gpus for rank in request.members)
    ring_s = (len(hosts) - 1) * profile.network.latency_ps / PS_PER_S + (latency_s if num_own > 1 else 0.0)
    if request.kind == Operation.ALL_TO_ALL:
        outside = (len(request.members) - num_own) / (len(request.members) - 1)
        inside_s = (1 - outside) * num_bytes / profile.nvlink.collective_bytes_per_s
        return ring_s + max(inside_s, outside * num_bytes / _nic_bytes_per_s(profile))
    rate = min(profile.nvlink.collective_bytes_per_s, num_own * _nic_bytes_per_s(profile))
    return num_rounds * ring_s + num_bytes / rate


def is_inside_host(request: ProgramRequest, profile: HardwareProfile) -> bool:
    """Return whether all ranks of a request's group are on one host."""
    return len(_hosts(request, profile)) == 1


def _hosts(request: ProgramRequest, profile: HardwareProfile) -> set[int]:
    return {rank // profile.host.num_gpus for rank in request.members}


def _message_s(request: ProgramRequest, profile: HardwareProfile) -> float:
    own, others = (rank // profile.host.num_gpus for rank in (request.rank, request.peer))
    if own == others:
        return profile.network.message_ps / PS_PER_S + request.num_bytes / profile.nvlink.collective_bytes_per_s
    latency_ps = profile.network.latency_ps + profile.network.message_ps
    return latency_ps / PS_PER_S + request.num_bytes / _nic_bytes_per_s(profile)


def _nic_bytes_per_s(profile: HardwareProfile) -> float:
    return profile.network.nic_rate_bps * profile.network.achieved_fraction / BITS_PER_BYTE
