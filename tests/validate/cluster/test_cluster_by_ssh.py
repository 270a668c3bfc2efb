"""`validate cluster` on hosts with OpenSSH servers of their own, and ports shaped to 50 Mbit/s."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fleet.ssh_cluster import Fault, SshNode
from tests.patience import patience
from tests.validate.cluster.shaped_site import node_folders, shaped_site

pytestmark = [pytest.mark.real, pytest.mark.slow]

NAMES = ("gpu1", "gpu2", "gpu3")
FLOWS = ("--only", "doctor", "--only", "matrix")


def test_a_good_site_passes_every_stage_and_is_not_measured_again(tmp_path: Path) -> None:
    """50 Mbit/s less 90 of 1,538 bytes are 47 Mbit/s; cabling and timers lack what they need, and say so."""
    folders = node_folders()
    with shaped_site(tmp_path, [SshNode(name=name) for name in NAMES[:2]]) as site:
        ran = site.validate()
        assert ran.returncode == 0, ran.stdout + ran.stderr
        states = {stage: site.result(stage)["state"] for stage in ("audit", "matrix", "collectives", "training")}
        assert set(states.values()) == {"done"}
        assert "cabling: skipped: no node hears a neighbour by LLDP" in ran.stdout
        assert "timers: skipped: nodes without RDMA devices" in ran.stdout
        assert "7 done, 2 skipped" in ran.stdout
        flow = next(row for row in site.result("matrix")["measurements"] if row["subject"] == "gpu1:eth0 to gpu2:eth0")
        assert flow["predicted"] == pytest.approx(50e6 * (1500 - 52) / (1500 + 38))
        assert flow["limit"] <= flow["measured"] <= 1.2 * 50e6
        assert (site.out / "page.html").stat().st_size > 10_000
        assert not site.leftovers()
        assert node_folders() <= folders

        again = site.validate()
        assert again.returncode == 0
        assert "matrix: done" not in again.stdout.split("\n\n")[0], "it is not run again"
        assert "doctor: done" in again.stdout

        other = site.validate("--rounds", "1")
        assert other.returncode == 2
        assert "a validation with other settings" in other.stderr


def test_a_slow_port_and_a_host_that_is_not_there_are_named(tmp_path: Path) -> None:
    """gpu3 sends at 12 Mbit/s where 50 were planned; gpu4 has no server. The others are measured all the same."""
    nodes = [*(SshNode(name=name) for name in NAMES), SshNode(name="gpu4", fault="refusing")]
    with shaped_site(tmp_path, nodes, {"gpu3": 12}) as site:
        ran = site.validate(*FLOWS, "--json")
    assert ran.returncode == 3
    answer = json.loads(ran.stdout)
    low = {one["entity"]: one for one in answer["findings"] if one["id"] == "cluster.flow-low"}
    assert "gpu3:eth0" in low, ran.stdout  # on a busy machine, another's flows may be low too
    assert "the worst: gpu3:eth0 to gpu" in low["gpu3:eth0"]["actual"]
    assert missing_nodes(ran.stdout) == {"gpu4": "connection refused"}
    stages = {one["stage"]: (one["state"], one["reason"]) for one in answer["stages"]}
    assert stages["doctor"] == ("incomplete", "1 of 4 nodes do not take part")
    assert stages["matrix"] == ("incomplete", "without gpu4")


def test_each_bad_host_is_named_with_what_happened(tmp_path: Path) -> None:
    """The doctor goes on without them, and the exit code says that something is incomplete."""
    limit_s = round(patience(4))
    faults: dict[Fault, str] = {
        "key-changed": "host key changed",
        "hanging": f"timed out: the program did not start within {limit_s} s",
        "dying": "ended early",
        "no-login": "login refused",
    }
    nodes = [SshNode(name="good"), *(SshNode(name=fault, fault=fault) for fault in faults)]
    with shaped_site(tmp_path, nodes) as site:
        ran = site.validate("--only", "doctor", "--timeout", str(limit_s), "--json")
        assert not site.leftovers()
        words = ("--only", "doctor", "--python", "/usr/bin/python-not-there", "--json")
        other = site.cluster.run("validate", "cluster", "good", "--out", str(tmp_path / "other"), *words)
    assert ran.returncode == other.returncode == 3, ran.stderr
    missing = missing_nodes(ran.stdout)
    assert set(missing) == set(faults)
    for fault, actual in faults.items():
        assert missing[fault].startswith(actual)
    assert "python-not-there" in missing_nodes(other.stdout)["good"], "the shell's own words"


def interrupt_in_turn(folder: Path, stages: Sequence[str]) -> None:
    """Press Ctrl-C when each of these stages has ended; each run goes on where the one before was stopped."""
    folders = node_folders()
    with shaped_site(folder, [SshNode(name=name) for name in NAMES[:2]]) as site:
        for stage in stages:
            ran = site.interrupt_after(stage)
            assert ran.returncode == 130, ran.stderr
            assert b"Traceback" not in ran.stderr
            assert site.result(stage)["state"] in ("done", "skipped"), "those without LLDP are"
            assert (site.out / "record" / "run.json").is_file(), "what there is is in a record"
            assert not site.leftovers(), stage
            assert node_folders() <= folders


def test_ctrl_c_keeps_what_is_there_and_ends_everything_on_the_nodes(tmp_path: Path) -> None:
    """It is pressed in the audit, in the matrix, and in the collectives."""
    interrupt_in_turn(tmp_path, ("doctor", "before", "matrix"))


@pytest.mark.sweep
def test_ctrl_c_in_each_stage(tmp_path: Path) -> None:
    """In those, the short stages between, and the training."""
    interrupt_in_turn(tmp_path, ("doctor", "audit", "cabling", "before", "matrix", "timers", "collectives", "training"))


def test_a_launchers_ranks_are_the_nodes(tmp_path: Path) -> None:
    """As under torchrun on two hosts: rank 0 controls and reports, rank 1 serves it and says nothing."""
    with shaped_site(tmp_path, [SshNode(name=name) for name in NAMES[:2]]) as site:
        first, second = site.launch("--only", "doctor", "--only", "audit", "--only", "matrix")
        assert not site.leftovers()
        assert (first.returncode, second.returncode, second.stdout) == (0, 0, ""), first.stderr + second.stderr
        assert "matrix: done" in first.stdout
        assert "2 nodes read" not in second.stdout
        subjects = {row["subject"] for row in site.result("matrix")["measurements"]}
        assert {"gpu1:eth0 to gpu2:eth0", "gpu2:eth0 to gpu1:eth0"} <= subjects
        assert site.result("audit")["state"] == "done", "read by the nodes' own programs"


def missing_nodes(output: str) -> dict[str, str]:
    """Return what the findings say of nodes that do not take part."""
    findings = json.loads(output)["findings"]
    return {one["entity"]: one["actual"] for one in findings if one["id"] == "cluster.node-missing"}
