"""All ranks' ledgers as one trace, brought to rank 0 when a run has ended.

Left out: jobs whose ledgers together don't fit in rank 0's memory; a recipe with fewer traced steps has smaller ones.
"""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

from foundation.traces import CommTrace
from trainer_probe.comm import Comm
from trainer_probe.ledger import merge


def gather_trace(comm: Comm) -> CommTrace | None:
    """Return the requests of all ranks on rank 0, None on the others; every rank calls this."""
    num_ranks = comm.layout.world_size
    if num_ranks == 1:
        return comm.ledger()
    with tempfile.TemporaryDirectory(prefix="fabrictune-ledgers-") as name:
        path = Path(name, "ledger.parquet")
        comm.ledger().write(path)
        own = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(num_ranks)]
        dist.all_gather(sizes, torch.tensor([len(own)]))
        largest = max(int(size) for size in sizes)
        padded = torch.zeros(largest, dtype=torch.uint8)
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in range(num_ranks)] if comm.rank == 0 else None
        dist.gather(padded, parts)
        if parts is None:
            return None
        traces = []
        for part, size in zip(parts, sizes, strict=True):
            path.write_bytes(part[: int(size)].numpy().tobytes())
            traces.append(CommTrace.read(path))
        return merge(traces)
