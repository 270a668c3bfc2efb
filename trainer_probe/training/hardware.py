"""The device of a rank: which it is, whether it is there, and the settings of its driver."""

import importlib.util
import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe

if TYPE_CHECKING:
    import torch


def check_device(recipe: Recipe, local_rank: int = 0) -> None:
    """Raise UnavailableError without torch, or where the recipe needs a GPU and torch sees none for this rank."""
    require_extra("torch", extra="train", where="trainer")
    check_compiler(recipe)
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


def check_compiler(recipe: Recipe) -> None:
    """Raise UnavailableError where layers are to be compiled and what torch compiles with is missing here."""
    if recipe.compile == "none":
        return
    compiler = os.environ.get("CXX", "g++")  # as torch chooses it
    if recipe.device == "cpu" and shutil.which(compiler) is None:
        found, remedy = f"no C++ compiler {compiler} on this machine", "install g++, or name another one in CXX"
    elif recipe.device == "cuda" and importlib.util.find_spec("triton") is None:
        found, remedy = "no Triton in this environment", "install triton, which CUDA builds of torch bring"
    else:
        return
    raise UnavailableError(
        Mistake(where=f"{recipe.name}: compile", found=found, next_step=f"{remedy}; or --set compile=none")
    )


def device_of(recipe: Recipe, local_rank: int = 0) -> "torch.device":
    """Return the device of a rank, of several GPUs its own by number.

    A device without a number is the current one of each thread, and threads begin with the first.
    """
    import torch

    return torch.device("cuda", local_rank) if recipe.device == "cuda" else torch.device("cpu")


def driver_settings(recipe: Recipe) -> Mapping[str, str]:
    """Return the environment that CUDA reads at its start and that the recipe's overlap needs.

    Overlapped, a tensor-parallel collective must start before the product it runs beside, which else takes all
    processors of the GPU: one queue keeps the order in which both were launched. Other axes overlap without, and
    would wait in it for what a stream waits for.

    Source: CUDA C++ Programming Guide, `CUDA_DEVICE_MAX_CONNECTIONS`; Megatron-LM, issue 533.
    """
    is_needed = recipe.device == "cuda" and recipe.degrees.layout.tp > 1 and POLICIES[recipe.overlap].overlaps("tp")
    return {"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if is_needed else {}
