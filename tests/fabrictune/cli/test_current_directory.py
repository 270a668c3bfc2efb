"""No command imports anything from the current directory, and neither do the processes that it starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.foundation.children import module_command
from tests.patience import patience

ENDED_S = 120.0
COMMAND = (str(Path(sys.executable).with_name("fabrictune")),)
MODULE = tuple(module_command("fabrictune"))
OUR_NAMES = ("fabrictune", "rdma_bench", "foundation", "collectives", "trainer_probe", "netsim", "topology", "cc")
THEIR_NAMES = ("numpy", "numba", "torch", "ray", "redis", "pyverbs", "sitecustomize", "usercustomize", "setproctitle")
SCENARIO = """
name: small
fabric: {builder: clos, num_hosts: 3, hosts_per_tor_set: 3, nics_per_host: 1, tiers: 2, nic_rate: 100 Gbps,
         uplink_rate: 100 Gbps, downlink_split: 1}
traffic: {workload: incast, senders: 2, message: 10 KB}
law: {name: none}
"""
SWEEP = """
name: sweep
scenario: small.yaml
vary: [{key: traffic.message, values: [10 KB, 20 KB]}]
objectives: [{metric: completion_time.max}]
"""
CHECK = ("coll", "init", "check", "--tp", "1", "--pp", "1", "--dp", "2")
STORM = ("coll", "init", "storm", "--ranks", "8", "--tp", "2", "--pp", "2", "--pattern", "tcp-ordered")
BENCH = ("coll", "bench", "all_reduce", "--ranks", "2", "-e", "8 B", "-w", "1", "-n", "5")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder in which any module of the standard library, or of ours, writes a file when imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    text = f"with open({str(tmp_path / 'imported')!r}, 'a') as file: file.write(__name__ + ' ')\n"
    for name in (*sorted(sys.stdlib_module_names), *OUR_NAMES, *THEIR_NAMES):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text)
    (folder / "small.yaml").write_text(SCENARIO)
    (folder / "sweep.yaml").write_text(SWEEP)
    return folder


def run_in(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command there; the modules that were imported from there fail the test."""
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=patience(ENDED_S), check=False)
    imported = folder.with_name("imported")
    assert not imported.exists(), f"{imported.read_text()}\n{ran.stderr}"
    return ran


@pytest.mark.parametrize("start", [COMMAND, MODULE], ids=["fabrictune", "python -P -m fabrictune"])
@pytest.mark.parametrize("words", [("doctor",), ("rdma", "bw"), ("sim", "sweep", "sweep.yaml"), ("law", "list")])
def test_a_command_imports_nothing_from_there(hostile: Path, start: tuple[str, ...], words: tuple[str, ...]) -> None:
    """The processes under other Pythons that doctor and bw start, and the compiler, included."""
    ran = run_in(hostile, *start, *words)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("words", [CHECK, STORM, BENCH, ("train", "run", "tiny", "--set", "num_steps=1")])
def test_ranks_and_their_stores_and_loaders_import_nothing_from_there(hostile: Path, words: tuple[str, ...]) -> None:
    """Their command ends well, since nothing was put in the place of what they need."""
    pytest.importorskip("torch")
    ran = run_in(hostile, *COMMAND, *words)
    assert ran.returncode in (0, 1), ran.stderr


@pytest.mark.slow
def test_validation_on_this_machine_imports_nothing_from_there(hostile: Path) -> None:
    """Two trainings, and the messages between them."""
    pytest.importorskip("torch")
    ran = run_in(hostile, *COMMAND, "validate", "local", "--steps", "2")
    assert ran.returncode in (0, 1), ran.stderr


@pytest.mark.slow
def test_workers_of_a_ray_cluster_import_nothing_from_there(hostile: Path) -> None:
    """Ray itself puts the driver's current directory first on their search path."""
    pytest.importorskip("ray")
    ran = run_in(hostile, *COMMAND, "sim", "sweep", "sweep.yaml", "--on", "ray")
    assert ran.returncode in (0, 1), ran.stderr


def test_the_module_as_a_program_forgets_where_it_was_started(tmp_path: Path) -> None:
    """`python -m fabrictune` without `-P`: Python has put the current directory first on the search path."""
    for name in ("json", "numpy", "click", "rdma_bench"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write(__name__)\n")
    ran = subprocess.run([sys.executable, "-m", "fabrictune", "law", "list"], cwd=tmp_path, check=False)
    assert not (tmp_path / "imported").exists()
    assert ran.returncode == 0
