"""A diagnosis of processes of this machine, with faults planted in some of them."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabrictune.diagnostics.checks import blamed_ranks, check_diagnosis
from fabrictune.diagnostics.plan import ALL_TO_ALL, BISECTION, NEIGHBOURS, make_plan
from fabrictune.diagnostics.running import diagnose_locally

pytest.importorskip("torch")

PLANTS = [sys.executable, "-P", str(Path(__file__).with_name("plants.py"))]


@pytest.fixture
def shaped_loopback() -> list[str]:
    """Give the words that run a command where the loopback device carries 200 Mbit/s."""
    if os.geteuid() != 0 or not (shutil.which("tc") and shutil.which("unshare")):
        pytest.skip("a namespace with a traffic shaper needs root, iproute2 and util-linux")
    shape = "ip link set lo up && tc qdisc add dev lo root tbf rate 200mbit burst 128kb latency 50ms"
    if subprocess.run(["unshare", "--net", "sh", "-c", shape], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no token bucket filter")
    return ["unshare", "--net", "sh", "-c", f'{shape} && exec "$@"', "sh"]


@pytest.mark.slow
def test_planted_faults_are_named_and_nobody_else(shaped_loopback: list[str], tmp_path: Path) -> None:
    """Rank 1 is five times slower, 2 computes a wrong element and syncs slowly, 3 has a shaped loopback device."""
    plan = make_plan(4, 4, only=["products", "disk", "loopback", ALL_TO_ALL, NEIGHBOURS, BISECTION])
    prefixes = {1: [*PLANTS, "slow"], 2: [*PLANTS, "wrong bits"], 3: shaped_loopback}
    diagnosis = diagnose_locally(plan, ranks_per_tor=4, folder=tmp_path, prefixes=prefixes)
    report = check_diagnosis(diagnosis)
    found = {(finding.entity.split(" (")[0], finding.id, finding.actual.split(":")[0]) for finding in report.findings}
    assert {
        ("rank 1", "diagnose.node-slow", "matrix products"),
        ("rank 2", "diagnose.node-fails", "products"),
        ("rank 3", "diagnose.node-slow", "TCP on the loopback device"),
    } <= found
    assert 0 not in blamed_ranks(report.findings, diagnosis)
    assert diagnosis.bisection is not None
    assert len(diagnosis.bisection.rounds) == 1
    assert [group.ranks for group in diagnosis.groups if group.test == NEIGHBOURS] == [(0, 1), (2, 3), (1, 2), (3, 0)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sweep
def test_a_slow_disk_and_other_bits_are_named(tmp_path: Path) -> None:
    plan = make_plan(4, 4, only=["disk", "training step"])
    prefixes = {1: [*PLANTS, "slow disk"], 2: [*PLANTS, "other bits"]}
    diagnosis = diagnose_locally(plan, ranks_per_tor=4, folder=tmp_path, prefixes=prefixes)
    report = check_diagnosis(diagnosis)
    assert {(finding.entity.split(" (")[0], finding.id) for finding in report.findings} == {
        ("rank 1", "diagnose.node-slow"),
        ("rank 2", "diagnose.bits-differ"),
    }


@pytest.mark.sweep
def test_a_rank_that_is_stopped_is_silent_and_the_others_are_tested() -> None:
    """Rank 2 is stopped once it has introduced itself: its own test has no answer, and the groups go on without it."""
    plan = make_plan(3, 3, only=["GPU health", BISECTION])
    stopped: list[float] = []

    def stop(fraction: float, note: str = "", /) -> None:
        if not stopped:
            stopped.append(time.monotonic())
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            ranks = [pid for pid in children if b"rank_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]
            os.kill(int(sorted(ranks, key=int)[2]), 19)

    diagnosis = diagnose_locally(plan, ranks_per_tor=3, group_limit_s=3.0, progress=stop)
    assert dict(diagnosis.silent) == {2: BISECTION}
    assert diagnosis.bisection is not None
