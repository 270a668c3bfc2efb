"""`fabrictune coll`, from the command line to the record."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.collectives.startup.servers import start_redis
from fabrictune.foundation.records import RunRecord
from tests.patience import patience

pytest.importorskip("torch")

ROOT = Path(__file__).parents[3]


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
    has_redis: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The password comes from the environment; without it the server's refusal is one message, not one a rank."""
    with start_redis() as server:
        words = ["coll", "init", "check", "--tp", "2", "--pp", "1", "--dp", "2", "--store", str(server.address)]
        words += ["--out", str(tmp_path / "check")]
        monkeypatch.setenv("FABRICTUNE_STORE_PASSWORD", server.address.password or "")
        assert run(words) == 0
        assert f"4 ranks made 4 groups over {server.address} (ordered), the slowest rank in" in capfd.readouterr().out
        record = RunRecord.read(tmp_path / "check")
        assert record.run["configuration"]["store"] == str(server.address)
        assert record.tables["startup"]["rank"].tolist() == [0, 1, 2, 3]
        assert (record.tables["startup"]["elapsed_ns"] > 0).all()
        monkeypatch.delenv("FABRICTUNE_STORE_PASSWORD")
        assert run(words) == 3
        replaced, refused, *_ = capfd.readouterr().err.splitlines()
        assert replaced.startswith(f"warning: {tmp_path}/check: the record of an earlier run there is replaced")
        assert refused.startswith(f"{server.address}: refuses a client without password (")


def test_a_bench_is_printed_recorded_and_right(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two processes, every operation at one size; what gloo does otherwise is said."""
    words = ["coll", "bench", "all", "--ranks", "2", "-b", "4 KiB", "-e", "4 KiB", "-n", "2"]
    assert run([*words, "--out", str(tmp_path / "bench")]) == 0
    printed = capfd.readouterr().out
    assert "2 ranks on 1 host over gloo" in printed
    assert "gloo's own is an all-reduce, of twice the bytes" in printed
    record = RunRecord.read(tmp_path / "bench")
    assert record.kind == "coll bench"
    assert record.tables["measurements"]["num_wrong"].tolist() == [0] * 7


def test_a_bench_of_ranks_that_others_started(tmp_path: Path) -> None:
    """Two processes with torchrun's variables: one record, by rank 0, and not a word from rank 1."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    words = ["coll", "bench", "all_reduce", "-b", "1 KiB", "-e", "1 KiB", "-n", "2", "--json", "--out", "bench"]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "fabrictune", *words],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "GLOO_SOCKET_IFNAME": "lo",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "RANK": str(rank),
                "WORLD_SIZE": "2",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    first, second = (process.communicate(timeout=patience(120))[0] for process in ranks)
    assert [process.returncode for process in ranks] == [0, 0]
    assert second == ""
    printed = json.loads(first)
    assert [(row["num_ranks"], row["num_wrong"]) for row in printed["measurements"]] == [(2, 0)]
    assert RunRecord.read(tmp_path / "bench").kind == "coll bench"


def test_mistakes_of_a_bench_name_their_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operation that there is none of, a size without unit, NCCL without GPUs, and half of torchrun's variables."""
    assert run(["coll", "bench", "all_reduc"]) == 2
    assert "OPERATION: unknown operation 'all_reduc'\n  did you mean 'all_reduce'?" in capsys.readouterr().err
    assert run(["coll", "bench", "all", "-e", "64"]) == 2
    assert "coll bench: -e: '64': a size needs its unit" in capsys.readouterr().err
    assert run(["coll", "bench", "all", "-f", "1"]) == 2
    assert "coll bench: --step-factor: 1\n  allowed: 2 to 1024" in capsys.readouterr().err
    assert run(["coll", "bench", "all", "--backend", "nccl"]) == 3
    assert "NCCL wants a GPU for each" in capsys.readouterr().err
    monkeypatch.setenv("RANK", "0")
    assert run(["coll", "bench", "all"]) == 2
    assert "environment: RANK is set, and WORLD_SIZE, MASTER_ADDR, MASTER_PORT not" in capsys.readouterr().err


def test_nccl_tests_output_becomes_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two sizes in two places are four rows; what was not checked says N/A."""
    path = tmp_path / "all_reduce.txt"
    path.write_text(
        "# Collective test starting: all_reduce_perf\n"
        "#  Rank  0 Group  0 Pid 1 on secret-a device  0 [0x00] A100\n"
        "#  Rank  1 Group  0 Pid 1 on secret-b device  0 [0x00] A100\n"
        " 1024 256 float sum -1 10.00 0.10 0.10 0 20.00 0.05 0.05 N/A\n"
        " 2048 512 float sum -1 10.00 0.20 0.20 0 20.00 0.10 0.10 N/A\n"
    )
    assert run(["coll", "import", str(path), "--out", str(tmp_path / "record")]) == 0
    printed = capsys.readouterr().out
    assert "nccl-tests, text: 4 measurements of 2 ranks on 2 hosts" in printed
    assert printed.count("N/A") == 2
    assert "note: no average at the end: the run did not end, or the file is cut\n" in printed
    written = [file.read_bytes() for file in (tmp_path / "record").iterdir()]
    assert not any(b"secret" in content for content in written)
    assert run(["coll", "import", str(path), "--keep-hosts", "--json", "--out", str(tmp_path / "record")]) == 0
    assert json.loads(capsys.readouterr().out)["configuration"]["hosts"] == ["secret-a", "secret-b"]


def test_a_collective_is_modelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two sizes, in the engine too: what is printed, recorded and given as JSON."""
    scenario = tmp_path / "four.yaml"
    scenario.write_text(
        "name: four\nfabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}\n"
        "traffic: {workload: all_reduce, layout: {dp: 4}, message: 1 MB}\n"
    )
    words = ["coll", "model", str(scenario), "all_reduce", "send_recv", "--engine"]
    words += ["-b", "100 KB", "-e", "1 MB", "-f", "10", "--out", str(tmp_path / "model")]
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert "4 ranks a group; times, and busbw in GB/s" in printed
    assert "engine: the packet engine" in printed
    assert run([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["model"]
    assert [(row["operation"], row["size_bytes"]) for row in rows] == [
        (name, size) for name in ("all_reduce", "send_recv") for size in (100_000, 1_000_000)
    ]
    assert all(row["line_ps"] < row["bound_ps"] <= row["fair_ps"] < row["engine_ps"] for row in rows)
    assert RunRecord.read(tmp_path / "model").kind == "coll model"


def test_a_measurement_is_compared_with_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight ranks at half of the NICs' 200 Gbps: what is left is said not to be the network, and what would test it."""
    text = tmp_path / "all_reduce.txt"
    ranks = "".join(f"#  Rank {rank} Group 0 Pid 1 on n{rank} device 0 [0x00] A100\n" for rank in range(8))
    text.write_text(
        f"# Collective test starting: all_reduce_perf\n{ranks}"
        " 8000000 2000000 float sum -1 1200.0 6.67 11.67 0\n 80000000 20000000 float sum -1 11500.0 6.96 12.17 0\n"
    )
    words = ["coll", "compare", str(text), "--scenario", str(ROOT / "scenarios" / "allreduce.yaml")]
    words += ["--out", str(tmp_path / "compare")]
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert "time = alpha + bytes / rate, fitted:" in printed
    assert [line.split()[2:9] for line in printed.splitlines() if " 80000000 " in line] == [
        ["80000000", "11.5", "ms", "5.715", "ms", "2.01", "50%"]
    ]
    assert "not the network: what grows with the size" in printed
    assert "    to test: ib_write_bw at line rate" in printed
    assert run([*words, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["attribution"][-1]
    assert sum(value for name, value in row.items() if name.endswith("_ps")) == pytest.approx(
        2 * row["measured_ps"] + row["bound_ps"] + row["fair_ps"]
    )
    assert RunRecord.read(tmp_path / "compare").kind == "coll compare"
