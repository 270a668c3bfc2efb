"""The cluster of a plan, as a few rates.

Source: MegaScale (NSDI'24), section 2 and 3.6: A100 GPUs, eight to a host with a 200 Gbps NIC each. 300 GB/s each way
over NVLINK is its vendor's figure; 267.9 Tflop/s is the best product that "ML Engineering" (Bekman) measured on one,
86 % of the peak of 312.
"""

from dataclasses import dataclass, field

from fabrictune.foundation.errors import InputError, Mistake


@dataclass(frozen=True, kw_only=True)
class HardwareSpec:
    """Rates of a GPU and of its links. Raises InputError."""

    flops_per_s: float = field(default=267.9e12, metadata={"help": "of a GPU on matrix products, as achieved"})
    nvlink_rate_bps: float = field(default=2400e9, metadata={"help": "out of a GPU to others of its host"})
    nic_rate_bps: float = field(default=200e9, metadata={"help": "out of a GPU to other hosts"})
    gpus_per_host: int = field(default=8, metadata={"help": "consecutive ranks joined by NVLINK"})
    memory_bytes: int | None = field(default=None, metadata={"help": "of a GPU; without it there is no limit"})

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=name, found=f"{value:g}", allowed="above 0")
            for name, value in vars(self).items()
            if value is not None and not value > 0
        ]
        if mistakes:
            raise InputError(*mistakes)
