"""The page on adding a collective: its module is saved, listed, proved, costed and simulated as the page says."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fabrictune.collectives import algorithms, plans
from fabrictune.collectives.algorithms import ALGORITHMS, Algorithm, Implementation
from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.schedule import GroupShape
from fabrictune.conformance.collectives import proofs
from fabrictune.conformance.validate import collectives
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Medium, Operation
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.placement import place

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-collective.md").read_text()
MODULE, LISTING, TEST = (
    re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in re.findall(r"```python\n(.*?) *```", PAGE, re.DOTALL)
)


@pytest.fixture
def pairwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the page's module, listed as the page lists it."""
    (tmp_path / "pairwise.py").write_text(MODULE)
    place_of_module = importlib.util.spec_from_file_location("pairwise", tmp_path / "pairwise.py")
    assert place_of_module
    assert place_of_module.loader
    module = importlib.util.module_from_spec(place_of_module)
    place_of_module.loader.exec_module(module)
    names: dict[str, Any] = {
        "pairwise": module,
        "Algorithm": Algorithm,
        "Implementation": Implementation,
        "Operation": Operation,
    }
    table: Any = algorithms.ALGORITHMS
    for key, value in eval("{" + LISTING.strip() + "}", names).items():
        monkeypatch.setitem(table, key, value)
    plans._base.cache_clear()
    return module


@pytest.mark.parametrize("num_members", [1, 2, 3, 17])
def test_the_pairwise_all_gather_is_proved(pairwise: ModuleType, num_members: int) -> None:
    """Every member ends with every chunk once."""
    assert find_errors(pairwise.all_gather(GroupShape(num_members=num_members)), Operation.ALL_GATHER) == []


def test_the_pages_own_test_passes(pairwise: ModuleType) -> None:
    """Its arithmetic is in its docstring."""
    names: dict[str, Any] = {"pairwise": pairwise, "GroupShape": GroupShape, "np": np}
    exec(TEST, names)
    names["test_each_of_four_members_sends_three_chunks"]()


@pytest.mark.usefixtures("pairwise")
def test_its_cost_is_that_of_its_schedule() -> None:
    """Each of five members sends four chunks of a fifth."""
    shape = GroupShape(num_members=5)
    assert ALGORITHMS["pairwise"].implementation_of(Operation.ALL_GATHER).cost(shape) == Cost(rounds=1, buffers=0.8)


@pytest.mark.usefixtures("pairwise")
def test_its_conformance_cases_follow_from_the_listing() -> None:
    """A proof, and a run in the packet engine of 16 ranks within 3 % of the lower bound."""
    found = [case for case in (*proofs.cases(), *collectives.cases()) if "pairwise" in case.name]
    assert [case.name for case in found] == [
        "collectives.pairwise-all-gather-errors",
        "validate.pairwise-all-gather-16-ranks-16000-KB",
    ]
    assert all(case.low <= case.run() <= case.high for case in found)


@pytest.mark.usefixtures("pairwise")
def test_a_scenario_can_name_it() -> None:
    """Four ranks on four hosts: twelve messages of a quarter of the buffer."""
    fabric = build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=4, nics_per_host=1, tiers=2))
    layout = ParallelLayout(dp=4)
    placement = place(layout, fabric, "contiguous", gpus_per_host=1)
    trace = collective_step(layout, 1000, operation=Operation.ALL_GATHER)
    _, traffic = expand(trace, placement, fabric, ExpansionSpec(algorithm="pairwise"))
    assert traffic.bytes_N[traffic.medium_N == Medium.FABRIC].tolist() == [250] * 12
