"""Peak rates of GPUs by the name of a device, from the bundled hardware profiles.

A model's utilisation (MFU) is a share of the peak of dense matrix products in half precision.
"""

from fabrictune.hardware.files import profile_of_device

HALF_PRECISIONS = frozenset({"bfloat16", "float16"})


def find_peak(device_name: str, precision: str) -> float | None:
    """Return a device's peak rate in operations per second, None where it is not known."""
    profile = profile_of_device(device_name)
    return profile.gpu.peak_flops_per_s if profile and precision in HALF_PRECISIONS else None
