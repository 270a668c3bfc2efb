"""What commands write: never over what is not theirs, whole or not at all, and known to be writable before the work."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.foundation.records import RunRecord
from tests.fabrictune.conftest import ROOT, Cli
from tests.patience import patience

SMALL = """
name: small
fabric: {builder: fat_tree, radix: 4}
traffic: {workload: incast, senders: 1, message: 100 KB}
"""
SWEEP = """
name: small
scenario: small.yaml
vary: [{key: traffic.message, values: [50 KB, 100 KB]}]
probe: false
seeds: 1
objectives: [{metric: completion_time.max}]
"""
LONG = SMALL.replace("small", "long").replace("100 KB", "100 GB")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    """Put a scenario and a sweep of its name into the test's folder."""
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "sweep.yaml").write_text(SWEEP)


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_leaves_a_project_with_a_run_json_alone(cli: Cli, tmp_path: Path) -> None:
    """A file called run.json is not yet a record."""
    project = tmp_path / "proj"
    (project / "src").mkdir(parents=True)
    (project / "run.json").write_text("{}")
    (project / "src" / "code.py").write_text("x")
    before = content(project)
    ran = cli("sim", "run", "small.yaml", "--out", "proj")
    assert (ran.returncode, ran.stderr) == (2, "proj: not an empty folder, and no run record\n  next: name another\n")
    assert content(project) == before


def test_a_run_and_a_sweep_of_one_name_never_meet(cli: Cli, tmp_path: Path) -> None:
    """Neither takes the other's folder, whichever came first."""
    assert cli("sim", "sweep", "sweep.yaml", "--quiet").returncode == 0
    before = content(tmp_path / "runs" / "small")
    ran = cli("sim", "run", "small.yaml")
    assert (ran.returncode, ran.stderr) == (2, "runs/small: the folder of a sweep\n  next: name another\n")
    assert content(tmp_path / "runs" / "small") == before
    assert cli("sim", "run", "small.yaml", "--out", "runs/one").returncode == 0
    swept = cli("sim", "sweep", "sweep.yaml", "--out", "runs/one")
    assert (swept.returncode, swept.stderr) == (
        2,
        "runs/one: not an empty folder, and not one of a sweep\n  next: name another with --out\n",
    )
    assert RunRecord.read(tmp_path / "runs" / "one").run["name"] == "small"


def test_a_sweep_follows_no_link_and_removes_only_its_own(cli: Cli, tmp_path: Path) -> None:
    """`points` that leads to a home; folders with a dot in a sweep of ours."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "key").write_text("x")
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "points").symlink_to(home)
    assert cli("sim", "sweep", "sweep.yaml", "--out", "g").returncode == 2
    assert cli("sim", "sweep", "sweep.yaml", "--out", "own").returncode == 0
    (tmp_path / "own" / "points" / ".git").mkdir()
    (tmp_path / "own" / "points" / ".git" / "HEAD").write_text("x")
    assert cli("sim", "sweep", "sweep.yaml", "--out", "own").returncode == 0
    assert (tmp_path / "own" / "points" / ".git" / "HEAD").exists()
    (tmp_path / "own" / "points").rename(tmp_path / "elsewhere")
    (tmp_path / "own" / "points").symlink_to(home)
    assert cli("sim", "sweep", "sweep.yaml", "--out", "own").returncode == 2
    assert content(home) == {".ssh/key": b"x"}


def test_a_sweep_writes_through_no_linked_lock(cli: Cli, tmp_path: Path) -> None:
    """Nor makes its folders beside it."""
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "lock").symlink_to(tmp_path / "victim")
    assert cli("sim", "sweep", "sweep.yaml", "--out", "g").returncode == 2
    assert (tmp_path / "victim").read_text() == "mine"
    assert [path.name for path in (tmp_path / "g").iterdir()] == ["lock"]


def test_a_page_is_not_written_through_a_link_in_a_record(cli: Cli, tmp_path: Path) -> None:
    """A record from elsewhere whose report.html leads to a file of the reader's."""
    assert cli("sim", "run", "small.yaml").returncode == 0
    (tmp_path / "victim").write_text("mine")
    page = tmp_path / "runs" / "small" / "report.html"
    page.symlink_to(tmp_path / "victim")
    assert cli("report", "build", "runs/small").returncode == 0
    assert (tmp_path / "victim").read_text() == "mine"
    assert page.read_text().lstrip().startswith("<!doctype html>")
    assert not page.is_symlink()


FILES: dict[str, tuple[str, ...]] = {
    "k.json": ("topo", "build", "fat_tree", "radix=8", "link_rate=100 Gbps"),
    "k.graphml": ("topo", "export", "small.json"),
    "page.html": ("report", "build", "runs/small"),
}


def on_small_disk(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose files cannot grow beyond 4 KiB."""
    return subprocess.run(
        [sys.executable, "-m", "fabrictune", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(300),
    )


@pytest.mark.parametrize("name", ["k.json", "k.graphml", "page.html"])
def test_a_full_disk_keeps_the_earlier_file(cli: Cli, tmp_path: Path, name: str) -> None:
    """And the message names it."""
    assert cli("topo", "build", "fat_tree", "radix=8", "link_rate=100 Gbps", "--out", "small.json").returncode == 0
    assert cli("sim", "run", "small.yaml").returncode == 0
    (tmp_path / name).write_text("earlier")
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = on_small_disk(tmp_path, *FILES[name], "--out", name)
    assert (ran.returncode, ran.stderr) == (2, f"{name}: cannot be written (File too large)\n")
    assert (tmp_path / name).read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "command",
    [
        "sim run long.yaml",
        "sim sweep long-sweep.yaml",
        "ecmp analyze nowhere.yaml",
        "ecmp plan nowhere.yaml",
        "coll model long.yaml all_reduce",
        "coll import nowhere.txt",
        "coll compare nowhere.txt",
        "coll init storm",
        "coll init check --tp 2 --pp 2 --dp 4",
        "validate local",
        "validate predict tiny",
        "validate whatif long.yaml",
        "demo",
        "rdma timers simulate long.yaml",
        "train plan tiny",
        "train ablate tiny",
        "train run tiny",
        "coll bench all_reduce",
    ],
)
def test_out_is_looked_at_before_the_work(cli: Cli, tmp_path: Path, command: str) -> None:
    """A folder of other things is refused at once: none of these commands gets to its work, some of which takes hours.

    Where a command has to read its scenario first, to know the name, it has done that.
    """
    (tmp_path / "long.yaml").write_text(LONG)
    (tmp_path / "nowhere.yaml").write_text(SMALL)
    (tmp_path / "long-sweep.yaml").write_text(SWEEP.replace("small.yaml", "long.yaml"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    place = "mine/interleaved" if command == "demo" else "mine"
    if command == "demo":
        (tmp_path / "mine" / "interleaved").mkdir()
        (tmp_path / "mine" / "interleaved" / "thesis.tex").write_text("x")
    ran = cli(*command.split(), "--out", "mine")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"{place}: not an empty folder, and no")
    assert (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.parametrize(
    "command",
    ["topo build fat_tree radix=4", "topo import nowhere.csv", "topo export nowhere.csv", "trace import nowhere.txt"],
)
def test_a_file_is_looked_at_before_the_work(cli: Cli, tmp_path: Path, command: str) -> None:
    """The folder that it is for is not there; so is what would be read, which would be said first."""
    ran = cli(*command.split(), "--out", "missing/k.json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "missing/k.json: cannot be written (No such file or directory)\n"


def test_an_export_does_not_mix_with_one_of_more_ranks(cli: Cli, tmp_path: Path) -> None:
    """A reader would take the ranks of both for one job."""
    (tmp_path / "et").mkdir()
    (tmp_path / "et" / "trace.8.et").write_bytes(b"x")
    (tmp_path / "et" / "other.9.et").write_bytes(b"x")
    assert cli("train", "plan", "tiny", "--out", "plan").returncode == 0
    ran = cli("trace", "export", "plan/job_trace.parquet", "--out", "et")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "et: 'other.9.et' and 1 more, which this trace does not replace\n"
        "  allowed: a new or empty folder, or an earlier export of the same name and ranks\n"
        "  next: name another --out\n"
    )
    assert content(tmp_path / "et") == {"trace.8.et": b"x", "other.9.et": b"x"}
