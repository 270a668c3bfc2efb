"""A bench whose ranks somebody else has started, on any hosts: torchrun, or whatever sets the same variables.

Source: PyTorch, "torchrun (Elastic Launch)", environment variables; torch.distributed, `env://` initialisation.
"""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta

from collectives.measuring.spec import BenchSpec
from collectives.measuring.timing import Notes
from collectives.startup.servers import QUICK_RESOLVER
from foundation.errors import InputError, Mistake, UnavailableError

REQUIRED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def rank_in(environment: Mapping[str, str]) -> int | None:
    """Return which rank this process was started as, None where it was started by itself; raises InputError."""
    present = [name for name in REQUIRED if environment.get(name)]
    if "RANK" not in present:
        return None
    missing = [name for name in REQUIRED if name not in present]
    if missing or not all(environment[name].isdecimal() for name in ("RANK", "WORLD_SIZE", "MASTER_PORT")):
        found = f"RANK is set, and {', '.join(missing)} not" if missing else "RANK, WORLD_SIZE or MASTER_PORT no number"
        raise InputError(Mistake(where="environment", found=found, next_step="start the ranks with torchrun"))
    return int(environment["RANK"])


def bench_as_rank(
    spec: BenchSpec, *, backend: str, timeout_s: float, progress: Callable[[float], None] | None = None
) -> Notes:
    """Run a bench as the rank that the environment says, and return everybody's notes.

    Raises UnavailableError for NCCL on a machine without a GPU for this rank.
    """
    os.environ.update({name: value for name, value in QUICK_RESOLVER.items() if name not in os.environ})
    import torch
    import torch.distributed as dist

    from collectives.measuring.ranks import run_bench

    if backend == "nccl":
        _take_gpu(int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count())
    dist.init_process_group(backend, init_method="env://", timeout=timedelta(seconds=timeout_s))
    try:
        return run_bench(spec, progress)
    finally:
        dist.destroy_process_group()


def _take_gpu(local_rank: int, num_gpus: int) -> None:
    if local_rank >= num_gpus:
        raise UnavailableError(
            Mistake(
                where="--backend nccl",
                found=f"torch sees {num_gpus} GPUs here, and this is local rank {local_rank}",
                next_step="start one rank a GPU, with a torch that was built for CUDA; or measure over gloo",
            )
        )
    import torch

    torch.cuda.set_device(local_rank)
