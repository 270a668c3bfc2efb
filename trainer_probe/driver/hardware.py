"""The device of a rank: whether it is there, and its peak rate, of which a model's utilisation (MFU) is a share.

Peaks are of dense matrix products, without sparsity.

Source: NVIDIA's data sheets of A100 (2021), H100 SXM (2023), H200 (2024).
"""

from collections.abc import Mapping

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.recipes.schema import Recipe

PEAK_FLOPS_PER_S: Mapping[str, Mapping[str, float]] = {  # by a part of the device's name, then by precision
    "A100": {"bfloat16": 312e12, "float16": 312e12},
    "H100": {"bfloat16": 989.4e12, "float16": 989.4e12},
    "H200": {"bfloat16": 989.4e12, "float16": 989.4e12},
}


def check_device(recipe: Recipe, local_rank: int = 0) -> None:
    """Raise UnavailableError without torch, or where the recipe needs a GPU and torch sees none for this rank."""
    require_extra("torch", extra="train", where="trainer")
    if recipe.device == "cpu":
        return
    import torch

    num_gpus = torch.cuda.device_count()
    if local_rank >= num_gpus:
        raise UnavailableError(
            Mistake(
                where=f"{recipe.name}: device",
                found=f"torch sees {num_gpus} GPUs here, and this is local rank {local_rank}",
                next_step="start one rank per GPU, with a CUDA build of torch; or --set device=cpu",
            )
        )


def find_peak(device_name: str, precision: str) -> float | None:
    """Return a device's peak rate in operations per second, None where it is not known."""
    return next(
        (peaks.get(precision) for part, peaks in PEAK_FLOPS_PER_S.items() if part in device_name),
        None,
    )
