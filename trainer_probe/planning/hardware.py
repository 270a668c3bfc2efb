"""The cluster of a plan, as a few rates.

Source: `trainer_probe.gpus` for the rates of a GPU; MegaScale (NSDI'24), section 2 and 3.6, for the defaults: A100
GPUs, eight to a host with a 200 Gbps NIC each.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.gpus import DEFAULT_GPU, GPUS

_A100 = GPUS[DEFAULT_GPU]


@dataclass(frozen=True, kw_only=True)
class HardwareSpec:
    """Rates of a GPU and of its links. Raises InputError."""

    peak_flops_per_s: float = field(
        default=_A100.peak_flops_per_s, metadata={"help": "of a GPU on matrix products by its data sheet, for MFU"}
    )
    achieved_flops_per_s: float = field(
        default=_A100.achieved_flops_per_s, metadata={"help": "of a GPU on matrix products, as achieved"}
    )
    memory_bytes_per_s: float = field(
        default=_A100.memory_bytes_per_s, metadata={"help": "of a GPU's memory, read and written, as achieved"}
    )
    nvlink_rate_bps: float = field(
        default=_A100.nvlink_rate_bps, metadata={"help": "out of a GPU to others of its host"}
    )
    nic_rate_bps: float = field(default=200e9, metadata={"help": "out of a GPU to other hosts"})
    gpus_per_host: int = field(default=8, metadata={"help": "consecutive ranks joined by NVLINK"})
    memory_bytes: int | None = field(default=None, metadata={"help": "of a GPU; without it there is no limit"})

    def __post_init__(self) -> None:
        mistakes = [*_not_positive(self), *_above_peak(self)]
        if mistakes:
            raise InputError(*mistakes)

    @classmethod
    def of_gpu(cls, name: str, **changes: Any) -> Self:
        """Return the rates of a GPU of the table, with some fields changed; a change of None keeps the table's."""
        given = {field_name: value for field_name, value in changes.items() if value is not None}
        return cls(**{**vars(GPUS[name]), **given})


def _not_positive(hardware: HardwareSpec) -> Iterable[Mistake]:
    for name, value in vars(hardware).items():
        if value is not None and not value > 0:
            yield Mistake(where=name, found=f"{value:g}", allowed="above 0")


def _above_peak(hardware: HardwareSpec) -> Iterable[Mistake]:
    if hardware.achieved_flops_per_s > hardware.peak_flops_per_s:
        yield Mistake(
            where="achieved_flops_per_s",
            found=f"{hardware.achieved_flops_per_s:g}",
            allowed=f"at most the peak, {hardware.peak_flops_per_s:g}",
            next_step="give the peak of that GPU too",
        )
