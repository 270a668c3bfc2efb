"""Hosts are audited over SSH: complete for the good, each bad one named, in seconds."""

import json
import time
from pathlib import Path

import pytest

from tests.fleet.node_files import write_node_files
from tests.fleet.site import HOSTS, RAILS, host_texts
from tests.fleet.ssh_cluster import Fault, SshNode, ssh_cluster
from tests.patience import patience

BAD: tuple[Fault, ...] = ("refusing", "key-changed", "silent", "dying")
STATES = {
    "refusing": "connection refused",
    "key-changed": "host key changed",
    "silent": "timed out",
    "dying": "ended early",
}
WITHIN_S = 10.0


def make_nodes(folder: Path, number: int, *, num_bad: int) -> list[SshNode]:
    """Return hosts of the clean site whose first has an MTU of its own, and as many bad ones as asked for."""
    nodes = []
    for host in range(number - num_bad):
        texts = host_texts(host % len(HOSTS))
        if host == 0:
            texts[f"/sys/class/net/{RAILS[0]}/mtu"] = "1500\n"
        files = write_node_files(folder / f"node{host}", texts)
        nodes.append(SshNode(name=f"gpu{host}", files=files, fault="slow" if host == 1 else ""))
    return [*nodes, *(SshNode(name=f"bad{bad}", fault=BAD[bad % len(BAD)]) for bad in range(num_bad))]


def check_audit(folder: Path, number: int, *, num_bad: int) -> float:
    """Audit so many hosts, look at what came of each, and return the seconds it took."""
    nodes = make_nodes(folder, number, num_bad=num_bad)
    with ssh_cluster(folder, nodes) as cluster:
        limits = ("--timeout", f"{patience(8):.1f}", "--connect-timeout", f"{patience(2):.1f}")
        options = (*limits, "--json", "--out", str(folder / "audit"))
        started_s = time.monotonic()
        result = cluster.run("fleet", "audit", str(cluster.inventory), *options)
        wall_s = time.monotonic() - started_s
    assert result.returncode == 3, result.stderr
    answer = json.loads(result.stdout)
    states = {node["name"]: node["state"] for node in answer["nodes"]}
    assert states == {node.name: STATES.get(node.fault, "collected") for node in nodes}
    findings = {(finding["id"], finding["entity"]) for finding in answer["findings"]}
    named = {("fleet.not-collected", node.name) for node in nodes if node.name.startswith("bad")}
    assert named <= findings
    assert ("audit.mtu-differs", "gpu0 eth0") in findings
    assert {entity for rule, entity in findings if rule == "audit.mtu-differs"} == {"gpu0 eth0"}
    return wall_s


@pytest.mark.real
def test_eight_hosts_are_audited(tmp_path: Path) -> None:
    """Four good, one of them slow and one with an MTU of its own; four bad, each in its way."""
    check_audit(tmp_path, 8, num_bad=4)


@pytest.mark.real
@pytest.mark.sweep
def test_sixty_four_hosts_are_audited_within_seconds(tmp_path: Path) -> None:
    """Sixty good and four bad; the limit is for two quiet cores."""
    wall_s = check_audit(tmp_path, 64, num_bad=4)
    print(f"64 hosts audited in {wall_s:.1f} s")
    assert wall_s < patience(WITHIN_S)
