"""The page on adding a collective: its module is saved, registered, proved and costed as it says."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fabrictune.collectives import algorithms, alpha_beta, plans
from fabrictune.collectives.algorithms import Algorithm
from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Medium, Operation
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.placement import place

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-collective.md").read_text()
MODULE, LISTING, COST = (
    re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in re.findall(r"```python\n(.*?) *```", PAGE, re.DOTALL)
)


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the page's module, once its lines stand in both tables."""
    (tmp_path / "star.py").write_text(MODULE)
    place_of_module = importlib.util.spec_from_file_location("star", tmp_path / "star.py")
    assert place_of_module
    assert place_of_module.loader
    module = importlib.util.module_from_spec(place_of_module)
    place_of_module.loader.exec_module(module)
    names: dict[str, Any] = {"star": module, "Algorithm": Algorithm, "Operation": Operation, "Cost": Cost}
    for table, block in ((algorithms.ALGORITHMS, LISTING), (alpha_beta.COSTS, COST)):
        for key, value in eval("{" + block.strip() + "}", names).items():
            monkeypatch.setitem(table, key, value)
    plans._base.cache_clear()
    return module


@pytest.mark.parametrize("num_members", [1, 2, 3, 17])
def test_the_star_is_proved(star: ModuleType, num_members: int) -> None:
    """Two steps: all contributions come to member 0 once, and the sum goes to everyone."""
    assert find_errors(star.all_reduce(GroupShape(num_members=num_members)), Operation.ALL_REDUCE) == []


def test_its_cost_is_that_of_its_schedule(star: ModuleType) -> None:
    """Member 0 of five sends four buffers down."""
    shape = GroupShape(num_members=5)
    schedule = star.all_reduce(shape)
    sent = np.bincount(schedule.sender_M, weights=schedule.bytes_M(1))
    assert alpha_beta.cost("star", Operation.ALL_REDUCE, shape) == Cost(rounds=2, buffers=float(sent.max()))


@pytest.mark.usefixtures("star")
def test_a_scenario_can_name_it() -> None:
    """Four ranks on four hosts: three messages up and three down, of the whole buffer each."""
    fabric = build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=4, nics_per_host=1, tiers=2))
    layout = ParallelLayout(dp=4)
    placement = place(layout, fabric, "contiguous", gpus_per_host=1)
    _, traffic = expand(collective_step(layout, 1000), placement, fabric, ExpansionSpec(algorithm="star"))
    assert traffic.bytes_N[traffic.medium_N == Medium.FABRIC].tolist() == [1000] * 6
