"""Bench on ranks that a launcher started, on any hosts: torchrun, Slurm, or another that sets torchrun's variables.

Source: torch.distributed, `env://` initialisation.
"""

import os
from datetime import timedelta

from fabrictune.collectives.measurement.spec import BenchSpec
from fabrictune.collectives.measurement.timing import TimingSamples
from fabrictune.collectives.startup.launchers import Launched
from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.progress import Progress


def bench_as_rank(
    launched: Launched,
    spec: BenchSpec,
    *,
    backend: str,
    timeout_s: float,
    progress: Progress | None = None,
) -> TimingSamples:
    """Run a bench as the rank that a launcher has made of this process, and return the samples of all ranks.

    Raises UnavailableError for NCCL on a machine without a GPU for this rank.
    """
    rendezvous = {"MASTER_ADDR": launched.host, "MASTER_PORT": str(launched.port)}
    os.environ.update({**QUICK_RESOLVER, **os.environ, **rendezvous})
    import torch
    import torch.distributed as dist

    from fabrictune.collectives.measurement.ranks import run_bench

    if backend == "nccl":
        _take_gpu(launched.local_rank, torch.cuda.device_count())
    dist.init_process_group(
        backend,
        init_method="env://",
        rank=launched.rank,
        world_size=launched.num_ranks,
        timeout=timedelta(seconds=timeout_s),
    )
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
