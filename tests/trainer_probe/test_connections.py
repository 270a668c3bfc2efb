"""Connections of a rank, counted by its own open files."""

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
