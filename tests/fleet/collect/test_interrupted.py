"""Ctrl-C while nodes are asked: what was read is kept, the others are named, and nothing runs on any node."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fabrictune.fleet.collect.collection import read_collection
from fabrictune.fleet.transport.answer import State
from tests.fleet.ssh_cluster import SshCluster, SshNode, ssh_cluster
from tests.patience import patience

GOOD, HUNG = ("good0", "good1"), ("hung0", "hung1")


@pytest.mark.real
def test_what_was_read_is_kept_and_nothing_goes_on(tmp_path: Path) -> None:
    """Two hosts answer and two hang; Ctrl-C comes when both hanging logins are there and both others are gone."""
    nodes = [*(SshNode(name=name) for name in GOOD), *(SshNode(name=name, fault="hanging") for name in HUNG)]
    out = tmp_path / "out"
    with ssh_cluster(tmp_path, nodes) as cluster:
        words = ("fleet", "collect", str(cluster.inventory), "--out", str(out), "--json")
        limits = ("--timeout", str(patience(120)), "--connect-timeout", str(patience(10)))
        with cluster.start(*words, *limits) as process:
            await_sessions(cluster, {**dict.fromkeys(GOOD, False), **dict.fromkeys(HUNG, True)})
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=patience(30))
        await_sessions(cluster, dict.fromkeys((*GOOD, *HUNG), False))
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors
    assert json.loads(output)["is_partial"]
    collection = read_collection(out)
    assert collection.is_partial
    states = {state.name: state.state for state in collection.states}
    assert states == {**dict.fromkeys(GOOD, State.COLLECTED), **dict.fromkeys(HUNG, State.STOPPED)}
    assert {reading.name for reading in collection.readings} == set(GOOD)


def await_sessions(cluster: SshCluster, expected: dict[str, bool]) -> None:
    """Return when each host has had a login, and it is there still or no more, as expected."""
    ends_s = time.monotonic() + patience(60)
    while True:
        there = {node.name: has_session(cluster, number) for number, node in enumerate(cluster.nodes)}
        if there == expected:
            return
        assert time.monotonic() < ends_s, there


def has_session(cluster: SshCluster, number: int) -> bool | None:
    """Return whether a login of a host is there; None before the first."""
    if "Accepted publickey" not in (cluster.folder / f"sshd{number}.log").read_text():
        return None
    words = ("ip", "netns", "pids", f"{cluster.hub}-{number}")
    pids = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return any(command_of(pid).startswith(b"sshd: root") for pid in pids)


def command_of(pid: str) -> bytes:
    """Return a process's command line, nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
