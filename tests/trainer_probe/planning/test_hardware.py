"""The rates of a plan: those of the profiles, which are the best that were measured."""

import pytest

from fabrictune.hardware.files import bundled_profile
from fabrictune.trainer_probe.gpus import find_peak
from fabrictune.trainer_probe.planning.hardware import HardwareSpec


@pytest.mark.parametrize(
    ("name", "peak", "achieved", "memory", "nvlink", "nic"),
    [
        ("a100", 312e12, 267.9e12, 1820e9, 2400e9, 200e9),
        ("h100", 989.4e12, 794.5e12, 2776e9, 3600e9, 400e9),
        ("h200", 989.4e12, 794.5e12, 3978e9, 3600e9, 400e9),
    ],
)
def test_a_plan_takes_the_best_rates_of_a_profile(
    name: str, peak: float, achieved: float, memory: float, nvlink: float, nic: float
) -> None:
    """Decision 0071 has their sources; the steps that it lists rest on them."""
    assert HardwareSpec.of_profile(bundled_profile(name)) == HardwareSpec(
        peak_flops_per_s=peak,
        achieved_flops_per_s=achieved,
        memory_bytes_per_s=memory,
        nvlink_rate_bps=nvlink,
        nic_rate_bps=nic,
        gpus_per_host=8,
    )


def test_the_default_is_megascales_cluster() -> None:
    """A100s."""
    assert HardwareSpec() == HardwareSpec.of_profile(bundled_profile("a100"))


def test_a_change_of_none_keeps_the_profiles_rate() -> None:
    """As an option that was not given."""
    changed = HardwareSpec.of_profile(bundled_profile("h100"), nic_rate_bps=None, memory_bytes=80)
    assert (changed.nic_rate_bps, changed.memory_bytes) == (400e9, 80)


def test_a_peak_is_known_by_the_device_and_in_half_precision() -> None:
    """An H100 PCIe has another peak than an SXM: none rather than a wrong one."""
    assert find_peak("NVIDIA H100 80GB HBM3", "bfloat16") == 989.4e12
    assert find_peak("NVIDIA A100-SXM4-80GB", "float16") == 312e12
    assert find_peak("NVIDIA A100-SXM4-80GB", "float32") is None
    assert find_peak("NVIDIA H100 PCIe", "bfloat16") is None
