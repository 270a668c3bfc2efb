"""Peak rates of GPUs that a model's utilisation (MFU) is a share of: dense products, without sparsity.

Source: NVIDIA's data sheets of A100 (2021), H100 SXM (2023), H200 (2024).
"""

from collections.abc import Mapping

PEAK_FLOPS_PER_S: Mapping[str, Mapping[str, float]] = {  # by a part of the device's name, then by precision
    "A100": {"bfloat16": 312e12, "float16": 312e12},
    "H100": {"bfloat16": 989.4e12, "float16": 989.4e12},
    "H200": {"bfloat16": 989.4e12, "float16": 989.4e12},
}


def find_peak(device_name: str, precision: str) -> float | None:
    """Return the operations a second that a device has at most, None where they are not known."""
    return next(
        (peaks.get(precision) for part, peaks in PEAK_FLOPS_PER_S.items() if part in device_name),
        None,
    )
