"""Configuration of a host's PCIe: the links between NICs and the memory that holds the data.

A NIC has a link of its own to a PCIe switch. Beyond it, data of a GPU cross the GPU's link, which is the same for all
NICs of that GPU; data in the CPU's memory cross the switch's uplink to the root complex, which is the same for all NICs
under the switch. So a GPU and its NIC under one switch meet nobody, and NICs that share a GPU or an uplink share its
rate. NVLink is another way: its transfers go through the NVSwitch (`nvlink_rate`) and cross no PCIe.

A link carries payload at its rate after encoding and after the headers of its packets: 24 B for a write of the NIC into
memory, 20 B for the completion of a read.

Source: PCI Express Base Specification 5.0 and 6.0 (rates, encoding, flits); Intel, "Understanding PCI Express
Throughput" (headers); NVIDIA, DGX H100 User Guide, network modules: each ConnectX-7 beside one GPU.
Left out: link-layer packets, read requests, descriptors and completions of the NIC; latency of switches and root.
"""

from dataclasses import dataclass
from typing import Literal

from fabrictune.netsim.config.settings import require, setting

LANE_RATES_BPS = {  # after encoding: 128b/130b, and flits of 256 B with 236 B of packets
    3: 8 * 10**9 * 128 // 130,
    4: 16 * 10**9 * 128 // 130,
    5: 32 * 10**9 * 128 // 130,
    6: 64 * 10**9 * 236 // 256,
}
WRITE_HEADER_BYTES, COMPLETION_HEADER_BYTES = 24, 20
LANES = (1, 2, 4, 8, 16)
MAX_NICS = 64


@dataclass(frozen=True, kw_only=True)
class HostConfig:
    """PCIe of every host; without a generation it is as fast as the NICs want it."""

    pcie_generation: int | None = setting(None, "generation of all PCIe links, 3 to 6; by default they limit nothing")
    pcie_lanes: int = setting(16, "lanes of each link")
    max_payload_bytes: int = setting(256, "payload of a PCIe packet", known_as=("MaxPayload", "mps"))
    memory: Literal["gpu", "cpu"] = setting("gpu", "where the data lie: a GPU, or behind the root complex")
    nics_per_gpu: int = setting(1, "memory gpu: NICs of a host, in their order, that share one GPU and its link")
    nics_per_switch: int = setting(1, "memory cpu: NICs of a host, in their order, that share a PCIe switch's uplink")

    def __post_init__(self) -> None:
        is_right = self.pcie_generation is None or self.pcie_generation in LANE_RATES_BPS
        known = ", ".join(str(generation) for generation in LANE_RATES_BPS)
        require(is_right, "host.pcie_generation", f"{self.pcie_generation}", f"one of {known}")
        require(self.pcie_lanes in LANES, "host.pcie_lanes", f"{self.pcie_lanes}", "one of 1, 2, 4, 8, 16")
        is_right = 128 <= self.max_payload_bytes <= 4096
        require(is_right, "host.max_payload", f"{self.max_payload_bytes} B", "128 to 4096 B")
        for name in ("nics_per_gpu", "nics_per_switch"):
            value = getattr(self, name)
            require(1 <= value <= MAX_NICS, f"host.{name}", f"{value}", f"1 to {MAX_NICS}")

    @property
    def read_rate_bps(self) -> int:
        """Payload that a link carries from memory to NICs; only with a generation."""
        return self._payload_rate_bps(COMPLETION_HEADER_BYTES)

    @property
    def write_rate_bps(self) -> int:
        """Payload that a link carries from NICs to memory; only with a generation."""
        return self._payload_rate_bps(WRITE_HEADER_BYTES)

    @property
    def nics_per_link(self) -> int:
        """NICs that share the link behind the PCIe switch."""
        return self.nics_per_gpu if self.memory == "gpu" else self.nics_per_switch

    def _payload_rate_bps(self, header_bytes: int) -> int:
        assert self.pcie_generation is not None, "asked where links limit"
        rate_bps = LANE_RATES_BPS[self.pcie_generation] * self.pcie_lanes
        return rate_bps * self.max_payload_bytes // (self.max_payload_bytes + header_bytes)
