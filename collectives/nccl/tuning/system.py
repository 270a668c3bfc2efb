"""What NCCL's choice and its time depend on: hosts, GPUs, NVLink, NICs and what lies between them.

Rates are bits a second, as everywhere; NCCL's model counts GB/s that a copy reaches, which the properties give.

Left out: hosts whose GPUs or NICs differ, NVLink without a switch between more than two GPUs, several hosts in one
NVLink domain (MNNVL).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictune.foundation.errors import InputError, Mistake

GB_PER_S = 8e9  # in bits a second

# Payload rate of NVLink as a share of its signalling rate, by compute capability times ten.
# Source: NVIDIA/nccl v2.27.7-1, src/graph/topo.h: SM70, SM80, SM90 and SM100_NVLINK_BW over 25, 25, 25, 50 GB/s a link.
_NVLINK_EFFICIENCY: Mapping[int, float] = {70: 20.0 / 25, 80: 20.0 / 25, 90: 20.6 / 25, 100: 40.1 / 50}
CAPABILITIES = tuple(_NVLINK_EFFICIENCY)
CPUS = ("intel", "amd", "other")

# Microseconds that NCCL's proxy takes to post an operation. Source: tuning.cc, getNetOverhead.
_POST_US: Mapping[str, float] = {"intel": 1.0, "amd": 2.0, "other": 1.0}


@dataclass(frozen=True, kw_only=True)
class Transport:
    """A network as NCCL's network plug-in presents it, in latencies beside NCCL's own, which hold for InfiniBand."""

    name: str
    extra_us: float = 0.0  # one way, beyond InfiniBand's
    unsure_fraction: float = 0.0  # relative uncertainty of its latency
    simple_extra_us: float = 0.0  # more of it in the protocol Simple: completions that the proxy waits for
    message_us: float = 0.0  # that a NIC or its proxy is busy with a message beside its bytes
    tuner_us: float = 0.0  # the latency that the plug-in tells NCCL
    efficiency: float = 0.96  # payload of a NIC's rate
    environment: Mapping[str, str] = field(default_factory=dict)  # that the plug-in sets
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class System:
    """A job's hosts, all alike, and what joins their GPUs."""

    num_hosts: int
    gpus_per_host: int
    compute_capability: int  # times ten
    nvlink_rate_bps: float  # of a GPU, one direction; 0: PCIe alone
    has_nvswitch: bool
    nics_per_host: int
    nic_rate_bps: float
    pcie_rate_bps: float  # between a GPU or a NIC and its switch, payload
    cpu: str = "intel"
    transport: Transport

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=name, found=str(value), allowed=allowed)
            for name, value, allowed, is_good in (
                ("hosts", self.num_hosts, "1 to 100000", 1 <= self.num_hosts <= 100_000),
                ("GPUs a host", self.gpus_per_host, "1 to 72", 1 <= self.gpus_per_host <= 72),
                (
                    "compute capability",
                    self.compute_capability,
                    ", ".join(map(str, CAPABILITIES)),
                    self.compute_capability in CAPABILITIES,
                ),
                ("NICs a host", self.nics_per_host, "1 or more", self.nics_per_host >= 1 or self.num_hosts == 1),
                ("NIC rate", self.nic_rate_bps, "above 0", self.nic_rate_bps > 0 or self.num_hosts == 1),
                ("NVLink rate", self.nvlink_rate_bps, "0 or more", self.nvlink_rate_bps >= 0),
                ("PCIe rate", self.pcie_rate_bps, "above 0", self.pcie_rate_bps > 0),
                ("cpu", self.cpu, ", ".join(CPUS), self.cpu in CPUS),
            )
            if not is_good
        ]
        if self.num_ranks < 2:
            mistakes.append(Mistake(where="ranks", found=str(self.num_ranks), allowed="2 or more"))
        if mistakes:
            raise InputError(*mistakes)

    @property
    def num_ranks(self) -> int:
        """GPUs of all hosts."""
        return self.num_hosts * self.gpus_per_host

    @property
    def nvlink(self) -> float:
        """Payload of a GPU's NVLink in one direction, GB/s; 0 without NVLink."""
        return self.nvlink_rate_bps / GB_PER_S * _NVLINK_EFFICIENCY[self.compute_capability]

    @property
    def inside(self) -> float:
        """Payload of what joins a GPU to the others of its host, GB/s."""
        return self.nvlink or self.pcie_rate_bps / GB_PER_S

    @property
    def nic(self) -> float:
        """A NIC's rate behind its PCIe slot, GB/s."""
        return min(self.nic_rate_bps, self.pcie_rate_bps) / GB_PER_S

    @property
    def nic_payload(self) -> float:
        """What a NIC carries of large messages, GB/s: its share of its rate, or what PCIe leaves of it."""
        return min(self.nic_rate_bps * self.transport.efficiency, self.pcie_rate_bps) / GB_PER_S

    @property
    def post_us(self) -> float:
        """Microseconds that NCCL counts for posting an operation to the network."""
        return _POST_US[self.cpu]
