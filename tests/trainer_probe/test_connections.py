"""Connections of a rank, counted by its own open files."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

LAYOUT = ParallelLayout(tp=2, pp=2, dp=4)


def count_sockets(member: "Member") -> dict[str, NDArray[np.int64]]:
    """Count this rank's sockets after its groups are made, before any of them is used."""
    num_sockets = sum(file.is_socket() for file in Path("/proc/self/fd").iterdir())
    return {"num_sockets": np.array(num_sockets), "num_groups": np.array(len(member.process_groups))}


def test_a_rank_of_sixteen_starts_with_a_socket_a_group_and_two() -> None:
    """gloo listens on one for each group and for all ranks; one is the store's. Connected at once, 15 more would be."""
    pytest.importorskip("torch")
    for found in launch(LAYOUT, count_sockets):
        assert found["num_sockets"] <= found["num_groups"] + 2


EVERY_AXIS = ParallelLayout(tp=2, cp=2, dp=2, pp=2, ep=2)


def gather(layout: ParallelLayout, member: "Member") -> dict[str, NDArray[np.int64]]:
    """Gather contents of different sizes, none of them empty or all of them, and count this rank's connections."""
    from fabrictune.trainer_probe.comm import Comm

    before = count_sockets(member)["num_sockets"]
    gathered = Comm(layout, member).gather_bytes(bytes([member.rank]) * member.rank)
    num_connections = count_sockets(member)["num_sockets"] - before
    sizes = [-1] if gathered is None else [len(content) for content in gathered]
    is_whole = gathered is None or all(content == bytes([rank]) * rank for rank, content in enumerate(gathered))
    return {"sizes": np.array(sizes), "is_whole": np.array(is_whole), "num_connections": num_connections}


@pytest.mark.parametrize("layout", [LAYOUT, EVERY_AXIS])
def test_contents_come_to_the_first_rank_along_the_axes(layout: ParallelLayout) -> None:
    """Whole and in order; with connections to members of the first rank's groups only, not to all 15.

    Joint groups, to which a rank belongs as well, have nothing more to bring.
    """
    pytest.importorskip("torch")
    first, *others = launch(layout, partial(gather, layout))
    assert first["sizes"].tolist() == list(range(16))
    assert all(found["is_whole"] for found in (first, *others))
    assert all(found["sizes"].tolist() == [-1] for found in others)
    assert max(found["num_connections"] for found in (first, *others)) <= 1 + 3 + 1
