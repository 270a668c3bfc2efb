"""Sixteen processes that find one another and make the groups of a 3D layout, over every store and in both ways."""

from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabrictune.collectives.startup.servers import start_redis, start_tcp_store
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.startup import try_startup

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member, Method

pytest.importorskip("torch")

LAYOUT = ParallelLayout(tp=2, dp=4, pp=2)


@pytest.mark.parametrize("method", ["ordered", "global-barriers"])
@pytest.mark.parametrize("server", ["redis", "tcp", "tcp-poll"])
def test_sixteen_processes_make_the_groups_of_a_layout(
    server: str, method: "Method", request: pytest.FixtureRequest
) -> None:
    """8 + 4 + 8 groups; every group adds up the numbers of its own ranks, so each has the members it should."""
    if server == "redis":
        request.getfixturevalue("has_redis")
    with start_redis() if server == "redis" else start_tcp_store(use_libuv=server == "tcp") as running:
        trial = try_startup(LAYOUT, store=running.address, method=method)
    assert (trial.num_ranks, trial.num_groups) == (16, 8 + 4 + 8)
    assert (trial.elapsed_s_R > 0).all()


def test_without_a_store_one_is_served_here() -> None:
    """The default needs no server: the launcher serves a TCPStore while its ranks run."""
    assert try_startup(ParallelLayout(dp=2)).num_groups == 1


def add_up_alone(member: "Member") -> dict[str, FloatArray]:
    return {"sum_G": np.array([0.0]), "elapsed_s": np.array(0.1)}


def test_a_group_with_other_members_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that added itself up alone: the sum it should have had is said."""
    monkeypatch.setattr("fabrictune.trainer_probe.startup._add_up_ranks", add_up_alone)
    with pytest.raises(UnavailableError) as error:
        try_startup(ParallelLayout(dp=2))
    assert str(error.value).splitlines() == [
        "rank 0, group dp0: its members' numbers add up to 0",
        "  allowed: 1, of ranks 0, 1",
        "rank 1, group dp0: its members' numbers add up to 0",
        "  allowed: 1, of ranks 0, 1",
    ]
