"""The page on adding a collective: its file is proved, costed and simulated as the page says."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fabrictune.collectives.algorithms import ALGORITHMS, Algorithm
from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Medium, Operation
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.placement import place

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-a-collective.md").read_text()
MODULE, TEST = (textwrap.dedent(block) for block in re.findall(r" *```python\n(.*?) *```", PAGE, re.DOTALL))
(SCENARIO,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def pairwise(tmp_path: Path) -> Algorithm:
    """Return the algorithm in the page's file."""
    (tmp_path / "pairwise.py").write_text(MODULE)
    return ALGORITHMS.load(tmp_path / "pairwise.py", trust_code=True).value


@pytest.mark.parametrize("num_members", [1, 2, 3, 17])
def test_the_pairwise_all_gather_is_proved(pairwise: Algorithm, num_members: int) -> None:
    """Every member ends with every chunk once."""
    schedule = pairwise.implementations[Operation.ALL_GATHER].make_schedule(GroupShape(num_members=num_members))
    assert find_errors(schedule, Operation.ALL_GATHER) == []


def test_the_pages_own_test_passes(pairwise: Algorithm) -> None:
    """Its arithmetic is in its docstring."""
    module = SimpleNamespace(all_gather=pairwise.implementations[Operation.ALL_GATHER].make_schedule)
    names: dict[str, Any] = {"pairwise": module, "GroupShape": GroupShape, "np": np}
    exec(TEST, names)
    names["test_each_of_four_members_sends_three_chunks"]()


def test_its_cost_is_that_of_its_schedule(pairwise: Algorithm) -> None:
    """Each of five members sends four chunks of a fifth."""
    shape = GroupShape(num_members=5)
    assert pairwise.implementation_of(Operation.ALL_GATHER).cost(shape) == Cost(rounds=1, buffers=0.8)


@pytest.mark.usefixtures("pairwise")
def test_four_ranks_send_twelve_messages(tmp_path: Path) -> None:
    """Four ranks on four hosts: twelve messages of a quarter of the buffer."""
    fabric = build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=4, nics_per_host=1, tiers=2))
    layout = ParallelLayout(dp=4)
    placement = place(layout, fabric, "contiguous", gpus_per_host=1)
    trace = collective_step(layout, 1000, operation=Operation.ALL_GATHER)
    algorithm = ALGORITHMS.load(tmp_path / "pairwise.py", trust_code=True)
    _, traffic = expand(trace, placement, fabric, ExpansionSpec(algorithm=algorithm))
    assert traffic.bytes_N[traffic.medium_N == Medium.FABRIC].tolist() == [250] * 12


@pytest.mark.usefixtures("pairwise")
def test_a_scenario_runs_it_with_leave_and_not_without(tmp_path: Path) -> None:
    """The command as printed; the record names the file."""
    (tmp_path / "my_job.yaml").write_text(SCENARIO)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fabrictune", "sim", "run", "my_job.yaml", *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    refused = run()
    assert (refused.returncode, "--trust-code" in refused.stderr) == (2, True)
    done = run("--trust-code", "--quiet", "--fail-on", "never")
    assert (done.returncode, done.stderr) == (0, "")
    (extension,) = json.loads((tmp_path / "runs" / "my-job" / "run.json").read_text())["extensions"]
    assert (extension["kind"], extension["file"]) == ("collective algorithm", "pairwise.py")
