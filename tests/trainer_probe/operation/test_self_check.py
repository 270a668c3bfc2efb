"""The self-check of a node."""

import time
from pathlib import Path

import numpy as np
import pytest

from fabrictune.trainer_probe.operation import self_check
from fabrictune.trainer_probe.operation.messages import Listener
from fabrictune.trainer_probe.operation.self_check import SelfCheck, check_apart, run_self_check
from tests.patience import patience


def failed(result) -> list[str]:
    return [check["name"] for check in result["checks"] if not check["is_passed"]]


def test_this_machine_passes(tmp_path: Path, listener: Listener) -> None:
    """In a process of its own, over a real address of a driver; nothing is left in the folder."""
    asked = SelfCheck(folder=str(tmp_path / "node"), driver=listener.address, min_memory_bytes=1, min_disk_bytes=1)
    result = check_apart(asked, timeout_s=patience(30))
    assert result["is_passed"], result
    names = [check["name"] for check in result["checks"]]
    assert names == [
        "product cpu",
        "memory",
        "disk",
        "disk write",
        "shared memory",
        "interface lo",
        "loopback",
        "driver",
        "clock",
    ]
    assert list((tmp_path / "node").iterdir()) == []
    assert result["versions"]["fabrictune"]


def test_each_failure_says_what_to_do(tmp_path: Path) -> None:
    """Figure, limit and next step, all failures at once."""
    asked = SelfCheck(
        folder=str(tmp_path),
        driver=("127.0.0.1", 1),
        min_memory_bytes=1 << 60,
        min_disk_bytes=1 << 60,
        min_shared_bytes=1 << 60,
        versions={"fabrictune": "0.0.0"},
    )
    result = run_self_check(asked)
    assert not result["is_passed"]
    assert failed(result) == ["memory", "disk", "shared memory", "driver", "version fabrictune"]
    assert all(check["next_step"] for check in result["checks"] if not check["is_passed"])


def test_a_wrong_product_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One element that differs by one: the smallest fault there is."""
    left, right, expected = self_check.whole_number_matrices()
    expected = expected.copy()
    expected[100, 200] += 1
    monkeypatch.setattr(self_check, "whole_number_matrices", lambda: (left, right, expected))
    assert failed(run_self_check(SelfCheck(folder=str(tmp_path), min_memory_bytes=1, min_disk_bytes=1))) == [
        "product cpu"
    ]


def test_products_are_exact_in_any_order() -> None:
    """No partial sum of magnitudes reaches 2**24, from which float32 rounds; entries are exact in bfloat16."""
    left, right, _ = self_check.whole_number_matrices()
    assert (np.abs(left) @ np.abs(right)).max() < 2**24
    assert max(np.abs(left).max(), np.abs(right).max()) <= 2**8


def test_a_check_that_cannot_be_made_is_not_passed(tmp_path: Path) -> None:
    """An interface that is not there, and a folder that is a file."""
    (tmp_path / "file").write_text("")
    result = run_self_check(SelfCheck(folder=str(tmp_path / "file"), interface="none9", min_memory_bytes=1))
    assert failed(result) == ["disk", "network"]


def test_a_check_that_hangs_ends_in_time(tmp_path: Path) -> None:
    """The process is ended, and the node is not let in."""
    began_s, limit_s = time.monotonic(), patience(20)
    result = check_apart(SelfCheck(folder=str(tmp_path)), timeout_s=0.01)
    assert failed(result) == ["process"]
    assert "not over after 0.01 s" in result["checks"][0]["figure"]
    assert time.monotonic() - began_s < limit_s
