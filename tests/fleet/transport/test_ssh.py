"""Nodes are asked by SSH: real servers, good ones and those that fail in each way there is."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.ssh_cluster import SshCluster, SshNode, ssh_cluster
from tests.patience import patience

NODES = (
    SshNode(name="good", environment={"NCCL_IB_TC": "106", "UNRELATED": "1"}),
    SshNode(name="slow", fault="slow"),
    SshNode(name="refusing", fault="refusing"),
    SshNode(name="changed", fault="key-changed"),
    SshNode(name="unknown", fault="key-unknown"),
    SshNode(name="silent", fault="silent"),
    SshNode(name="hanging", fault="hanging"),
    SshNode(name="dying", fault="dying"),
    SshNode(name="noisy", fault="noisy"),
    SshNode(name="no-login", fault="no-login"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshCluster]:
    with ssh_cluster(tmp_path_factory.mktemp("cluster"), NODES) as made:
        yield made


@pytest.mark.real
def test_good_nodes_are_read_and_each_bad_one_is_named(cluster: SshCluster, tmp_path: Path) -> None:
    """Ten servers: two are read whole, each of the others has its own reason, and the exit code is 3."""
    out = tmp_path / "fleet"
    limits = ("--timeout", str(patience(4)), "--connect-timeout", str(patience(2)))
    result = cluster.run("fleet", "collect", str(cluster.inventory), "--out", str(out), "--json", *limits)
    assert result.returncode == 3, result.stderr
    states = {node["name"]: (node["state"], node["detail"]) for node in json.loads(result.stdout)["nodes"]}
    assert {name: state for name, (state, _) in states.items()} == {
        "good": "collected",
        "slow": "collected",
        "refusing": "connection refused",
        "changed": "host key changed",
        "unknown": "host key unknown",
        "silent": "timed out",
        "hanging": "timed out",
        "dying": "ended early",
        "noisy": "unusable answer",
        "no-login": "login refused",
    }
    assert states["noisy"][1].startswith("text that begins with 'welcome to this machine")
    assert "SHA256:" in states["changed"][1]
    assert sorted(path.name for path in out.iterdir()) == ["fleet.json", "good.json", "slow.json"]
    sections = {one["name"]: one["lines"] for one in json.loads((out / "good.json").read_text())["sections"]}
    assert sections["/sys/class/net/eth0/mtu"] == ["1500"]
    assert "NCCL_IB_TC=106" in sections["processes"]
    assert not any("UNRELATED" in line for line in sections["processes"])


@pytest.mark.real
def test_a_jump_host_is_gone_through(cluster: SshCluster, tmp_path: Path) -> None:
    """The second host is reached by a channel of the first; a jump host with another key stops all behind it."""
    config = cluster.config.read_text()
    jumping = tmp_path / "config"
    jumping.write_text(config.replace("Host slow\n", "Host slow\n  ProxyJump good\n"))
    result = cluster.run("fleet", "collect", "slow", "--out", str(tmp_path / "a"), "--ssh-config", str(jumping))
    assert result.returncode == 0, result.stdout + result.stderr
    jumping.write_text(config.replace("Host slow\n", "Host slow\n  ProxyJump changed\n"))
    result = cluster.run("fleet", "collect", "slow", "--out", str(tmp_path / "b"), "--ssh-config", str(jumping))
    assert result.returncode == 3
    assert "host key changed  jump host changed: ssh-ed25519 SHA256:" in result.stdout
