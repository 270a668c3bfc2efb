"""`validate cluster --via slurm` on a real Slurm: inside an allocation, and what it says without one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer_probe.operation.backends.slurm_cluster import missing_parts, slurm_cluster

NO_SLURM = missing_parts()
pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.skipif(bool(NO_SLURM), reason=NO_SLURM or "-")]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Give the variables with which Slurm's commands reach a Slurm of our own."""
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as configuration:
        outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        yield {**outside, "SLURM_CONF": str(configuration)}


def validate(environment: dict[str, str], out: Path, *before: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fabrictune", "validate", "cluster", "n1,n2", "--via", "slurm", "--out", str(out)]
    stages = ("--python", sys.executable, "--only", "doctor", "--only", "audit")
    return subprocess.run([*before, *command, *stages], env=environment, capture_output=True, text=True, check=False)


def test_nodes_of_an_allocation_are_validated_and_nothing_stays_in_the_queue(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Each node has the program that stays, and the reading of its settings beside it."""
    ran = validate(environment, tmp_path / "out", "salloc", "--quiet", "--nodelist=n[1-2]", "--nodes=2")
    assert "doctor: done" in ran.stdout, ran.stderr
    assert "audit: done" in ran.stdout, ran.stdout
    assert "2 done" in ran.stdout
    assert ran.returncode in (0, 1), "settings of this machine may be found wanting"
    queue = ["squeue", "--noheader", "--states=RUNNING,PENDING"]
    assert not subprocess.run(queue, env=environment, capture_output=True, text=True, check=True).stdout


def test_without_an_allocation_it_says_how_to_have_one(environment: dict[str, str], tmp_path: Path) -> None:
    """Outside, every start would ask for nodes of its own, and wait for those that hold the program that stays."""
    ran = validate(environment, tmp_path / "out")
    assert ran.returncode == 2
    assert "--via slurm: no allocation of Slurm" in ran.stderr
    assert "salloc --nodelist=n1,n2" in ran.stderr
