"""The system of a hardware profile, as NCCL's choice and its time take it.

A profile says what a GPU has of the network; a host's NICs share what its GPUs have. PCIe is that of the GPU's
generation where a profile does not say.
"""

from collections.abc import Mapping

from fabrictune.collectives.nccl.tuning.system import CAPABILITIES, GB_PER_S, System, Transport
from fabrictune.foundation.units import PS_PER_US
from fabrictune.hardware.profile import HardwareProfile

# Payload of sixteen lanes of PCIe 3, 4 and 5. Source: NVIDIA/nccl v2.27.7-1, src/graph/topo.cc, kvDictPciGen.
_PCIE_GB_PER_S: Mapping[int, float] = {70: 12.0, 80: 24.0, 90: 48.0, 100: 48.0}
STEP_US = 5.0  # of a step over InfiniBand in NCCL's own constants: Tree, LL
_VENDORS = {"amd": ("amd", "epyc"), "intel": ("intel", "xeon")}


def system_of(profile: HardwareProfile, num_hosts: int, *, gpus_per_host: int | None = None) -> System:
    """Return hosts of a profile; raises InputError for numbers that make no job."""
    host, nccl = profile.host, profile.nccl
    num_nics = nccl.nics_per_host or host.num_gpus
    capability = max((one for one in CAPABILITIES if one <= profile.gpu.compute_capability), default=CAPABILITIES[0])
    local = gpus_per_host or host.num_gpus
    return System(
        num_hosts=num_hosts,
        gpus_per_host=local,
        compute_capability=capability,
        nvlink_rate_bps=profile.nvlink.rate_bps,
        has_nvswitch=nccl.has_nvswitch is not False,
        nics_per_host=max(1, min(num_nics, num_nics * local // host.num_gpus)),
        nic_rate_bps=profile.network.nic_rate_bps * host.num_gpus / num_nics,
        pcie_rate_bps=nccl.pcie_rate_bps or _PCIE_GB_PER_S[capability] * GB_PER_S,
        cpu=_vendor(host.cpu),
        transport=_transport(profile),
    )


def notes_of_profile(profile: HardwareProfile) -> tuple[str, ...]:
    """Return what the profile leaves to be assumed, and the values that rest on no measurement."""
    notes = []
    if _vendor(profile.host.cpu) == "other":
        notes.append("host.cpu is not known: LL's rate and the cost of a post are those of Intel's hosts")
    keys = [
        key
        for key in profile.values()
        if key.startswith(("nccl.", "nvlink.rate", "network.nic_rate", "network.latency"))
    ]
    notes += [
        f"{key}: {profile.source_of(key)}" for key in keys if profile.source_of(key).startswith(("assumed", "fitted"))
    ]
    return tuple(notes)


def _transport(profile: HardwareProfile) -> Transport:
    nccl = profile.nccl
    return Transport(
        name=nccl.transport,
        extra_us=max(0.0, profile.network.latency_ps / PS_PER_US - STEP_US),
        unsure_fraction=profile.uncertainty_of("network.latency"),
        simple_extra_us=(nccl.simple_latency_ps or 0) / PS_PER_US,
        message_us=(nccl.message_ps or 0) / PS_PER_US,
        tuner_us=(nccl.tuner_latency_ps or 0) / PS_PER_US,
        efficiency=nccl.payload_fraction or 0.96,
        environment=dict(setting.split("=", 1) for setting in nccl.environment),
    )


def _vendor(cpu: str) -> str:
    words = cpu.lower()
    return next((vendor for vendor, parts in _VENDORS.items() if any(part in words for part in parts)), "other")
