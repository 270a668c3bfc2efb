"""Whether the device that a recipe asks for is there for a rank."""

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.recipes.schema import Recipe


def check_device(recipe: Recipe, local_rank: int = 0) -> None:
    """Raise UnavailableError where torch is missing, or sees no GPU for this rank of its machine and needs one."""
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
                next_step="start one rank a GPU, with a torch that was built for CUDA; or --set device=cpu",
            )
        )
