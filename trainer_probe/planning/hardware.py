"""The cluster of a plan, as a few rates that a hardware profile has.

The rates are the best that were measured, so that times at them are lower bounds. The default is the profile `a100`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.hardware.files import DEFAULT_PROFILE, bundled_profile
from fabrictune.hardware.profile import HardwareProfile


def _of_default(field_name: str, meaning: str) -> Any:
    """Return a field that has the value of the default profile."""
    return field(
        default_factory=lambda: _rates(bundled_profile(DEFAULT_PROFILE))[field_name], metadata={"help": meaning}
    )


def _rates(profile: HardwareProfile) -> dict[str, float]:
    """Return the rates of a profile by their fields."""
    return {
        "peak_flops_per_s": profile.gpu.peak_flops_per_s,
        "achieved_flops_per_s": profile.gpu.gemm.best_flops_per_s,
        "memory_bytes_per_s": profile.gpu.memory.best_bytes_per_s,
        "nvlink_rate_bps": profile.nvlink.rate_bps,
        "nic_rate_bps": profile.network.nic_rate_bps,
        "gpus_per_host": profile.host.num_gpus,
    }


@dataclass(frozen=True, kw_only=True)
class HardwareSpec:
    """Rates of a GPU and of its links; by default those of the profile `a100`. Raises InputError."""

    peak_flops_per_s: float = _of_default("peak_flops_per_s", "of a GPU on matrix products by its data sheet, for MFU")
    achieved_flops_per_s: float = _of_default("achieved_flops_per_s", "of a GPU on matrix products, as achieved")
    memory_bytes_per_s: float = _of_default("memory_bytes_per_s", "of a GPU's memory, read and written, as achieved")
    nvlink_rate_bps: float = _of_default("nvlink_rate_bps", "out of a GPU to others of its host")
    nic_rate_bps: float = _of_default("nic_rate_bps", "out of a GPU to other hosts")
    gpus_per_host: int = _of_default("gpus_per_host", "consecutive ranks joined by NVLINK")
    memory_bytes: int | None = field(default=None, metadata={"help": "of a GPU; without it there is no limit"})

    def __post_init__(self) -> None:
        mistakes = [*_not_positive(self), *_above_peak(self)]
        if mistakes:
            raise InputError(*mistakes)

    @classmethod
    def of_profile(cls, profile: HardwareProfile, **changes: Any) -> Self:
        """Return the rates of a profile, with some fields changed; a change of None keeps the profile's."""
        given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        return cls(**_rates(profile) | given)


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
