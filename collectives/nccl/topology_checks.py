"""Checks of a host's topology beside the NICs that the GPUs of a log use.

GPUs of a file are numbered as NCCL numbers them, and those of a log by their ranks; the first of one is the first of
the other on a host whose ranks use all of its GPUs in order. A file describes one host, and stands for all of them.
"""

from collections.abc import Iterator

from fabrictune.collectives.nccl.job_summary import JobSummary
from fabrictune.collectives.nccl.topology_xml import HostTopology
from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.nccl import FAR_NIC
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.wording import count, some


def check_topology(topology: HostTopology, summary: JobSummary) -> CheckReport:
    """Return which GPUs use a device that is not the nearest."""
    subject = f"{count(len(summary.gpu_devices), 'GPU')} with connections"
    names = {device.name for device in topology.network_devices if device.name}
    used = {name for one in summary.gpu_devices for name in one.devices}
    if len(topology.gpus) != summary.gpus_per_host:
        reason = f"the topology has {count(len(topology.gpus), 'GPU')}, the log {summary.gpus_per_host} a host"
    elif not used & names:
        reason = "the topology names none of the devices that connections of the log use"
    else:
        return run_check(FAR_NIC.id, subject, _far(topology, summary), actual="all through a nearest device")
    return skip_check(FAR_NIC.id, subject, reason)


def slowest_rate_bps(topology: HostTopology, summary: JobSummary) -> int:
    """Return the rate of the slowest device that NET/IB found, or of all where none of these is named; else UNKNOWN."""
    found = {name for devices in summary.devices.values() for name in devices}
    named = [one for one in topology.network_devices if one.name in found]
    return min((one.rate_bps for one in named or topology.network_devices if one.rate_bps > 0), default=UNKNOWN)


def _far(topology: HostTopology, summary: JobSummary) -> Iterator[Finding]:
    gpus = sorted(topology.gpus, key=lambda gpu: gpu.index)
    devices = {device.name: device for device in topology.network_devices}
    reported = set[tuple[int, str]]()
    for one in summary.gpu_devices:
        if one.is_relayed or one.gpu_index >= len(gpus):
            continue
        gpu = gpus[one.gpu_index]
        nearest = topology.nearest_devices(gpu)
        for name in one.devices:
            if name not in devices or devices[name] in nearest or (one.gpu_index, name) in reported:
                continue
            reported.add((one.gpu_index, name))
            distance, least = topology.distance(gpu, devices[name]), topology.distance(gpu, nearest[0])
            yield FAR_NIC.finding(
                entity=f"GPU {one.gpu_index} of {one.host}",
                expected=f"{some(device.name for device in nearest)}, at {least.name}",
                actual=f"{name}, at {distance.name}",
                confidence=Confidence.CONFIGURED,
            )
