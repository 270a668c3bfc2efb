"""`fabrictune coll init`, from the command line to the record."""

import json
from pathlib import Path

import pytest

from collectives.startup.servers import start_redis
from fabrictune.cli.main import run
from foundation.records import RunRecord

pytest.importorskip("torch")


def test_a_storm_is_printed_and_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four sizes in one pattern: its requests, their growth, and what was assumed."""
    words = ["coll", "init", "storm", "--ranks", "8,16,24,32", "--tp", "2", "--pp", "2", "--pattern", "tcp-ordered"]
    assert run([*words, "--extrapolate", "1000", "--out", str(tmp_path / "storm")]) == 0
    printed = capsys.readouterr().out
    assert "tcp-ordered  groups in order, by their members only, over TCPStore (libuv)" in printed
    assert "growth, and what it makes of 1,000 ranks:" in printed
    assert "assuming that:" in printed
    record = RunRecord.read(tmp_path / "storm")
    assert record.kind == "coll init storm"
    storms = record.tables["storms"]
    assert storms["ranks"].tolist() == [8, 16, 24, 32]
    assert storms["requests"].tolist() == storms["requests_expected"].tolist()
    (requests,) = record.tables["growth"]["exponent"][record.tables["growth"]["cost"] == "requests"]
    assert 0.9 < requests < 1.2


def test_a_pattern_is_compared_with_legacy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One size: no growth, but how many times less. 32 ranks in 33 groups: 34 barriers of 2 requests a rank."""
    words = ["coll", "init", "storm", "--ranks", "32", "--tp", "4", "--pp", "2", "--json", "--out", str(tmp_path / "s")]
    assert run([*words, "--pattern", "legacy", "--pattern", "tcp-unchecked"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (gain,) = printed["gains"]
    assert (gain["pattern"], gain["ranks"]) == ("tcp-unchecked", 32)
    legacy, unchecked = (row["requests"] for row in printed["storms"])
    assert gain["requests_times"] == legacy / unchecked > 1
    assert "growth" not in printed


def test_misspelt_patterns_and_impossible_sizes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With the nearest name there is, and the sizes that TP and PP allow."""
    assert run(["coll", "init", "storm", "--pattern", "tcp-orderd"]) == 2
    assert "--pattern: unknown pattern 'tcp-orderd'\n  did you mean 'tcp-ordered'?" in capsys.readouterr().err
    assert run(["coll", "init", "storm", "--ranks", "100"]) == 2
    assert "--ranks: 100 ranks\n  allowed: multiples of 64 (TP 8, PP 8)" in capsys.readouterr().err


def test_a_layout_starts_over_a_redis_with_a_password(
    has_redis: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The password comes from the environment; without it the server's refusal is one message, not one a rank."""
    with start_redis() as server:
        words = ["coll", "init", "check", "--tp", "2", "--pp", "1", "--dp", "2", "--store", str(server.address)]
        monkeypatch.setenv("FABRICTUNE_STORE_PASSWORD", server.address.password or "")
        assert run(words) == 0
        assert f"4 ranks made 4 groups over {server.address} (ordered), the slowest rank in" in capfd.readouterr().out
        monkeypatch.delenv("FABRICTUNE_STORE_PASSWORD")
        assert run(words) == 3
        assert capfd.readouterr().err.startswith(f"{server.address}: refuses a client without password (")
