"""Sixteen processes that find one another and make the groups of a 3D layout, over every store and in both ways."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from numpy.typing import NDArray

from collectives.startup.servers import require_redis_server, start_redis, start_tcp_store
from foundation.errors import UnavailableError
from foundation.layout import AXES, ParallelLayout
from trainer_probe.launcher import launch

if TYPE_CHECKING:
    from collectives.startup.process_groups import Member, Method

torch = pytest.importorskip("torch")
pytest.importorskip("redis")

LAYOUT = ParallelLayout(tp=2, dp=4, pp=2)


def add_up_ranks(member: "Member") -> Mapping[str, NDArray[Any]]:
    """Return the sum of the rank numbers of each group this rank is in, by gloo."""
    import torch.distributed as dist

    found = {}
    for name, group in member.process_groups.items():
        total = torch.tensor([member.rank])
        dist.all_reduce(total, group=group)
        found[name[:2]] = total.numpy()
    return found


@pytest.mark.parametrize("method", ["ordered", "global-barriers"])
@pytest.mark.parametrize("server", ["redis", "tcp", "tcp-poll"])
def test_sixteen_processes_make_the_groups_of_a_layout(server: str, method: "Method") -> None:
    """Every group adds up the numbers of its own ranks, so each has the members it should."""
    if server == "redis":
        try:
            require_redis_server()
        except UnavailableError as error:
            pytest.skip(error.mistakes[0].found)
    with start_redis() if server == "redis" else start_tcp_store(use_libuv=server == "tcp") as running:
        for rank, found in enumerate(launch(LAYOUT, add_up_ranks, store=running.address, method=method)):
            assert {axis: sums.tolist() for axis, sums in found.items()} == {
                axis: [sum(LAYOUT.group_of(axis, rank))] for axis in AXES
            }
