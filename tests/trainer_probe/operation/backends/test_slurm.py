"""Nodes as jobs of Slurm: against a real one where it is installed, and its recorded answers."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictune.foundation.errors import FabrictuneWarning, InputError, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.backends.slurm import (
    SlurmBackend,
    SlurmJob,
    SlurmSettings,
    parse_exit_code,
    parse_queue,
)
from tests.trainer_probe.operation.backends.slurm_cluster import missing_parts

NO_SLURM = missing_parts()
# Slurm 22.05.8: `squeue --noheader --states=all --format=%i|%j|%T|%N`, and `scontrol --oneliner show job`
QUEUE = """\
12|fabrictune.j1.a|RUNNING|n1
13|fabrictune.j1.b|PENDING|
11|fabrictune.j1.b|CANCELLED|n2
14|fabrictune.j10.a|RUNNING|n3
9|someone's job|RUNNING|n3
"""
KILLED = (
    "JobId=1 JobName=fabrictune.j1.a UserId=root(0) GroupId=root(0) MCS_label=N/A JobState=CANCELLED Reason=None "
    "Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:15 RunTime=00:00:02 NodeList=n1 Command=/tmp/entry.sh x"
)


def test_recorded_queue() -> None:
    """Jobs of other names are left out, one of a name that begins alike among them."""
    jobs = list(parse_queue(QUEUE.splitlines(), "fabrictune.j1."))
    assert [(job.number, job.node, job.has_ended) for job in jobs] == [
        ("12", "a", False),
        ("13", "b", False),
        ("11", "b", True),
    ]
    assert jobs[0] == SlurmJob(number="12", node="a", state="RUNNING", host="n1")


@pytest.mark.parametrize(
    ("described", "code"),
    [(KILLED, -15), (KILLED.replace("0:15", "3:0"), 3), (KILLED.replace("0:15", "0:0"), 0), ("", -1)],
)
def test_recorded_exit_codes(described: str, code: int) -> None:
    """A signal's number comes after the colon; a job that Slurm has forgotten has none."""
    assert parse_exit_code(described) == code


def test_names_and_options_are_checked() -> None:
    """All mistakes at once; none reaches a command line."""
    with pytest.raises(InputError) as raised:
        SlurmBackend("a b", SlurmSettings(options=("-p gpu", "--wrap", "x; rm")))
    text = str(raised.value)
    assert "job: 'a b'" in text
    assert "sbatch option: '-p gpu'\n  allowed: --name or --name=value" in text
    assert "sbatch option: 'x; rm'" in text


def test_missing_commands_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Slurm gets no traceback."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnavailableError, match="squeue: is not installed"):
        SlurmBackend("j1")


@pytest.fixture
def backend(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmBackend]:
    """Return a backend whose jobs write to a folder of the test."""
    monkeypatch.setenv("SLURM_CONF", str(cluster))
    backend = SlurmBackend("j1", SlurmSettings(output=f"{tmp_path}/%x.log", poll_s=0.1, end_timeout_s=scaled(60.0)))
    yield backend
    backend.close()


def await_file(path: Path) -> str:
    """Return the content of a file once it has some."""
    deadline_s = time.monotonic() + scaled(60.0)
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline_s, path
        time.sleep(0.05)
    return path.read_text()


SLEEPER = (
    "import os, pathlib, subprocess, sys, time\n"
    "child = subprocess.Popen(['sleep', '600'])\n"
    "pathlib.Path(sys.argv[1]).write_text(f'{child.pid} {sys.argv[2]} {os.environ[\"OWN_VALUE\"]}')\n"
    "time.sleep(600)\n"
)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(bool(NO_SLURM), reason=NO_SLURM or "-")
def test_node_is_started_found_and_ended(backend: SlurmBackend, tmp_path: Path) -> None:
    """Arguments arrive as they are; a later driver finds the node; its end leaves none of its processes."""
    seen = tmp_path / "seen"
    backend.start("a", [sys.executable, "-c", SLEEPER, str(seen), "$HOME; echo 'x'"], {"OWN_VALUE": "a b,c"})
    pid, rest = await_file(seen).split(" ", 1)
    assert rest == "$HOME; echo 'x' a b,c"
    later = SlurmBackend("j1", SlurmSettings(poll_s=0.1))
    assert list(later.living()) == ["a"]
    assert later.ended() == {}
    later.end("a")
    assert not Path(f"/proc/{pid}").exists()
    assert list(backend.living()) == []
    assert backend.ended()["a"] < 0
    assert (tmp_path / "fabrictune.j1.a.log").exists()


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(bool(NO_SLURM), reason=NO_SLURM or "-")
def test_exit_code_of_a_node_that_ended_by_itself(backend: SlurmBackend) -> None:
    """As `ended` reports it; a start after it has a job of its own."""
    for code in (3, 4):
        backend.start("b", [sys.executable, "-c", f"raise SystemExit({code})"], {})
        deadline_s = time.monotonic() + scaled(60.0)
        while backend.ended() != {"b": code}:
            assert time.monotonic() < deadline_s, backend.ended()
            time.sleep(0.1)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(bool(NO_SLURM), reason=NO_SLURM or "-")
def test_a_tracking_that_loses_processes_is_warned_of(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only cgroups hold a process whose parent has ended and that left its process group."""
    monkeypatch.setenv("SLURM_CONF", str(cluster))
    with pytest.warns(FabrictuneWarning, match=r"follows processes by proctrack/pgid"):
        SlurmBackend("j1").warn_of_tracking()


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(bool(NO_SLURM), reason=NO_SLURM or "-")
def test_refusals_are_slurms_own(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Slurm says is what the message says."""
    monkeypatch.setenv("SLURM_CONF", str(cluster))
    backend = SlurmBackend("j2", SlurmSettings(options=("--partition=none",)))
    with pytest.raises(UnavailableError, match=r"sbatch: .*[Ii]nvalid partition"):
        backend.start("a", ["true"], {})
