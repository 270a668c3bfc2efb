"""One rank of a job without the others: process groups that carry nothing, for its ledger alone.

Requests are entered as in a real job; what is received is whatever lay in memory.

Source: torch's `fake` backend (torch.testing._internal.distributed.fake_pg).
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.layout import ParallelLayout


@contextmanager
def join_alone(layout: ParallelLayout, rank: int) -> Iterator[Member]:
    """Give this process the groups of one rank of a layout, for as long as the block runs."""
    dist.init_process_group("fake", rank=rank, world_size=layout.world_size, store=FakeStore())
    try:
        plan = GroupPlan.of_layout(layout)
        groups = {
            group.name: dist.new_group(list(group.members), use_local_synchronization=True)
            for group in plan.of_rank(rank)
        }
        yield Member(rank=rank, plan=plan, process_groups=groups, elapsed_s=0.0)
    finally:
        dist.destroy_process_group()
