"""All ranks' ledgers as one trace, brought to rank 0 when a run has ended.

Left out: jobs whose ledgers together don't fit in rank 0's memory; a recipe with fewer traced steps has smaller ones.
"""

import torch
import torch.distributed as dist

from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.driver.outcome import as_parquet, from_parquet
from fabrictune.trainer_probe.ledger import merge


def gather_trace(comm: Comm) -> CommTrace | None:
    """Return the requests of all ranks on rank 0, None on the others; every rank calls this."""
    num_ranks = comm.layout.world_size
    if num_ranks == 1:
        return comm.ledger()
    own = torch.frombuffer(bytearray(as_parquet(comm.ledger())), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(num_ranks)]
    dist.all_gather(sizes, torch.tensor([len(own)]))
    padded = torch.zeros(max(int(size) for size in sizes), dtype=torch.uint8)
    padded[: len(own)] = own
    parts = [torch.empty_like(padded) for _ in range(num_ranks)] if comm.rank == 0 else None
    dist.gather(padded, parts)
    if parts is None:
        return None
    contents = [part[: int(size)].numpy().tobytes() for part, size in zip(parts, sizes, strict=True)]
    return merge([from_parquet(content) for content in contents])
