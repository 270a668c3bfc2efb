"""`diagnose` as a user calls it."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.studies.hangs.trials import try_clean, try_hang
from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page

GOLDEN = Path(__file__).parents[2] / "golden"
LAB = GOLDEN / "topology" / "lab.cabling.csv"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job").mkdir()
    monkeypatch.chdir(tmp_path)


def write_dumps(incomplete: tuple[int, ...]) -> None:
    """Write dumps of four ranks whose fifth all-reduce is complete but on some."""
    for rank in range(4):
        entry = {
            "process_group": ["0", "default_pg"],
            "pg_id": 0,
            "collective_seq_id": 5,
            "profiling_name": "nccl:all_reduce",
            "input_sizes": [[1024]],
            "state": "started" if rank in incomplete else "completed",
        }
        configuration = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
        dump = {"version": "2.10", "pg_config": configuration, "entries": [entry]}
        Path(f"job/trace_rank_{rank}").write_text(json.dumps(dump))


def write_counters(name: str, errors: int) -> None:
    Path(name).mkdir()
    for host in ("node1", "node2"):
        rise = errors if host == "node2" else 0
        lines = [
            f"/sys/class/infiniband/mlx5_{device}/ports/1/counters/symbol_error:{3 + rise * (device == 0)}"
            for device in range(2)
        ]
        Path(f"{name}/{host}.txt").write_text("\n".join(lines) + "\n")


def test_it_names_the_rank_and_writes_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    planted = try_hang(3, 16, Path("job"), fault="stalled loader", formats=("dumps", "ras", "stacks")).planted
    assert planted is not None
    assert run(["diagnose", "job"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("16 processes, ")
    assert f"error: rank {planted.ranks[0]} (" in out
    assert "stands in its data loader" in out
    record = RunRecord.read(Path("runs/diagnosis"))
    assert [finding.id for finding in record.findings] == ["hang.held-up"]
    assert "Hangs" in build_page([record], title="hang")


def test_nothing_that_stands_still_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    try_clean(1, 16, Path("job"), formats=("dumps", "stacks"))
    assert run(["diagnose", "job", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hangs"] is False


def test_a_request_that_does_not_complete_leads_to_a_port(capsys: pytest.CaptureFixture[str]) -> None:
    """Rank 2 does not complete what the others did; symbol errors rose on its NIC mlx5_0, which two channels share."""
    write_dumps(incomplete=(2,))
    shutil.copy(GOLDEN / "nccl" / "roce-2.30.log", "job/nccl.log")
    write_counters("before", 0)
    write_counters("after", 9000)
    assert run(["diagnose", "job", "--fabric", str(LAB), "--counters", "before", "after"]) == 1
    out = capsys.readouterr().out
    assert "error: rank 2 (GPU 0 of host node2, process 100): does not complete a request that all have issued" in out
    assert "error: leaf1:Ethernet8 -> node2:mlx5_0: on the way of 4 of 8 hung queue pairs" in out
    assert "node2:mlx5_0: errors of the link: 9,000" in out


def test_without_counters_the_ports_that_fit_are_one_set(capsys: pytest.CaptureFixture[str]) -> None:
    write_dumps(incomplete=(2,))
    shutil.copy(GOLDEN / "nccl" / "roce-2.30.log", "job/nccl.log")
    assert run(["diagnose", "job", "--fabric", str(LAB), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["cause"], printed["processes"][0]["rank"]) == (
        "does not complete a request that all have issued",
        2,
    )
    port = next(finding for finding in printed["findings"] if finding["id"] == "hang.port")
    assert port["severity"] == "warning"
    assert "no counter tells these ports apart" in port["actual"]


def test_mistakes_of_its_options_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "job", "--device", "mlx5_0"]) == 2
    assert "--device: 'mlx5_0'\n  allowed: DEVICE=PORT: mlx5_0=nic0" in capsys.readouterr().err
    assert run(["diagnose", "job"]) == 2
    assert "no evidence of a job" in capsys.readouterr().err
