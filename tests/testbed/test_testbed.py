"""A testbed is built, reached, and gone without a trace, however it ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.network_namespaces import inside, run_tool
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.testbed import bring_up, list_testbeds, take_down, temporary_testbed
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from tests.patience import patience
from tests.real.namespaces import require_namespaces

pytestmark = pytest.mark.real

FABRIC = plan_testbed(
    build_clos(
        ClosSpec(num_hosts=2, hosts_per_tor_set=1, nics_per_host=2, tiers=2, uplinks_per_tor=1, downlink_split=1)
    )
)
SMALL = ("--hosts", "2", "--no-ssh")


@pytest.fixture
def name() -> Iterator[str]:
    """Give a name that no other testbed has; nothing of that name is left."""
    require_namespaces()
    mine = f"test{os.getpid()}"
    yield mine
    left = list_testbeds().get(mine)
    take_down(mine)
    assert left is None


def with_sshd() -> None:
    if shutil.which("sshd", path="/usr/sbin") is None:
        pytest.skip("openssh-server is not installed")


def started(name: str, folder: Path, *command: str) -> "subprocess.Popen[str]":
    """Return `testbed run` of a command that prints a line when it runs."""
    words = (sys.executable, "-m", "fabrictune", "validate", "testbed", "run", *SMALL, "--name", name)
    return subprocess.Popen(
        [*words, "--out", str(folder), "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_hosts_are_reached_by_ssh_and_by_every_rail(name: str, tmp_path: Path) -> None:
    """Each has its name and interfaces; the packets of rail 1 go by rail 1."""
    with_sshd()
    with temporary_testbed(FABRIC, name, tmp_path) as made:
        ssh = made.command(
            "ssh", "-F", str(made.files.ssh_config), "host1", "hostname; ls /sys/class/net; cat /etc/hosts"
        )
        said = subprocess.run(ssh, capture_output=True, text=True, timeout=patience(60), check=True).stdout.splitlines()
        assert said[:5] == ["host1", "lo", "mgmt0", "nic0", "nic1"]
        assert "198.18.0.1\thost0" in said
        ways = [
            run_tool(made.host_command("host0", "ip", "route", "get", address)) for address in ("10.0.0.3", "10.0.0.4")
        ]
        assert [way.split()[4] for way in ways] == ["nic0", "nic1"]
        shapers = json.loads(
            run_tool(made.host_command("host0", "tc", "-json", "qdisc", "show", "dev", "nic1", "root"))
        )
        assert [(one["kind"], one["options"]["rate"]) for one in shapers] == [("tbf", 12_500_000)]


def test_the_commands_of_its_life(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Up once and not twice; a command inside; status says the same as up; down, and it is no more."""
    own = ("--name", name)
    assert run(["validate", "testbed", "up", *SMALL, *own, "--out", str(tmp_path), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [host["name"] for host in made["hosts"]] == ["host0", "host1"]
    assert run(["validate", "testbed", "status", *own, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == made
    assert run(["validate", "testbed", "up", *SMALL, *own]) == 2
    assert f"testbed '{name}': is up\n" in capsys.readouterr().err
    assert run(["validate", "testbed", "enter", *own, "--host", "host1", "--", "ip", "link", "show", "nic0"]) == 0
    assert run(["validate", "testbed", "enter", *own, "--", "false"]) == 1
    assert run(["validate", "testbed", "enter", *own, "--host", "host2", "--", "true"]) == 2
    assert run(["validate", "testbed", "down", *own]) == 0
    assert run(["validate", "testbed", "status", *own]) == 2
    assert f"testbed '{name}': is not up\n" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_takes_it_down(number: signal.Signals, name: str, tmp_path: Path) -> None:
    """Exit code 130, and neither its namespaces nor its command are left."""
    process = started(name, tmp_path, "sh", "-c", "echo up; exec sleep 3600")
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    process.communicate(timeout=patience(60))
    assert (process.returncode, list_testbeds().get(name)) == (130, None)


def test_the_next_one_removes_what_a_killed_one_left(name: str, tmp_path: Path) -> None:
    """Also its processes; one that is in use by a living process is refused."""
    process = started(name, tmp_path, "sh", "-c", "echo up; exec sleep 3600")
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == "up\n"
    command = ["validate", "testbed", "run", *SMALL, "--name", name, "--out", str(tmp_path), "--", "true"]
    assert run(command) == 2
    process.kill()
    process.wait()  # what it started lives, and holds its pipes
    process.stdout.close()
    process.stderr.close()
    assert list_testbeds()[name]
    assert run(command) == 0


def test_without_the_shaper_nothing_is_left(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without tbf: what is missing and what to do."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "tc").write_text("#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2\nexit 2\n")
    (programs / "tc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(UnavailableError, match=r"qdisc kind is unknown.\n  next: use a kernel .* modprobe sch_tbf"):
        bring_up(FABRIC, name, tmp_path, with_ssh=False)


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3: it cannot be had here."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(["validate", "testbed", "up"]) == 3
    assert "network namespaces need root\n  next: run it with sudo" in capsys.readouterr().err


def test_nothing_outside_is_touched(name: str, tmp_path: Path) -> None:
    """The machine's own interfaces and routes are the same, while it is up and after."""
    require_namespaces()
    before = [run_tool(["ip", "-json", what]) for what in ("address", "route")]
    with temporary_testbed(FABRIC, name, tmp_path, with_ssh=False) as made:
        assert [run_tool(["ip", "-json", what]) for what in ("address", "route")] == before
        assert run_tool(inside(made.command()[3], "ip", "-json", "route")) != before[1]
