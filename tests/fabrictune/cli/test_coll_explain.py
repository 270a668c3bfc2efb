"""`fabrictune coll explain` of logs in the wording of several years and libraries, word for word."""

import io
import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run

GOLDEN = Path(__file__).parents[2] / "golden" / "nccl"
HAS_FINDINGS = ("sockets-2.3",)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.log")), ids=lambda path: path.stem)
def test_a_log_is_explained_word_for_word(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Golden: NCCL 2.3 and 2.26 to 2.30, RCCL, EFA and Slingshot, written to the source's formats."""
    monkeypatch.chdir(GOLDEN)
    assert run(["coll", "explain", path.name]) == (path.stem in HAS_FINDINGS)
    assert capsys.readouterr().out == path.with_suffix(".txt").read_text()


def test_it_gives_one_json_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Job, timers, draft with its assumptions, comparison, findings and checks."""
    assert run(["coll", "explain", str(GOLDEN / "one-nic-2.26.log"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["job"]["gpus_of_host"] == [{"host": "nodeA", "num_gpus": 4}, {"host": "nodeB", "num_gpus": 4}]
    assert printed["job"]["num_relayed"] == 2
    assert printed["draft"]["is_rate_assumed"]
    assert {row["cause"] for row in printed["compared"]["verdict_rates"]} == {"nic", "not_the_network"}
    assert "coll.rate-decides" in {finding["id"] for finding in printed["findings"]}
    assert {check["rule"] for check in printed["checks"] if check["result"] == "not run"} >= {"coll.gap"}


def test_results_of_another_job_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight ranks beside a log of four; and two files of results."""
    results = tmp_path / "results.txt"
    rows = (GOLDEN / "one-nic-2.26.log").read_text().splitlines()
    results.write_text("\n".join(row for row in rows if "NCCL INFO" not in row) + "\n")
    log = str(GOLDEN / "roce-2.30.log")
    assert run(["coll", "explain", log, str(results)]) == 2
    assert "results: results of 8 ranks beside a log of 4" in capsys.readouterr().err
    assert run(["coll", "explain", log, str(results), str(results.with_suffix(".yaml"))]) == 2
    assert "RESULTS: 2 files that are no logs of NCCL" in capsys.readouterr().err


def test_results_beside_the_log_are_found_wherever_they_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log alone, and results alone, say together what one file says."""
    rows = (GOLDEN / "one-nic-2.26.log").read_text().splitlines()
    log, results = tmp_path / "nccl.log", tmp_path / "results.txt"
    log.write_text("\n".join(row for row in rows if "NCCL INFO" in row) + "\n")
    results.write_text("\n".join(row for row in rows if "NCCL INFO" not in row) + "\n")
    values = []
    for words in ([str(results), str(log)], [str(GOLDEN / "one-nic-2.26.log")]):
        run(["coll", "explain", *words, "--json"])
        values.append(json.loads(capsys.readouterr().out)["compared"])
    assert values[0] == values[1]


def test_a_job_on_one_host_gets_no_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its results are fitted, and --out is a mistake."""
    log = tmp_path / "nccl.log"
    log.write_text(
        "a:1:1 [0] NCCL INFO NCCL version 2.26.2+cuda12\n"
        "a:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0\n"
        "a:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 80 commId 0x1 - Init COMPLETE\n"
    )
    assert run(["coll", "explain", str(log)]) == 0
    assert "no scenario drafted: a job on one host" in capsys.readouterr().out
    assert run(["coll", "explain", str(log), "--out", str(tmp_path / "x.yaml")]) == 2
    assert "--out: no scenario can be drafted: a job on one host" in capsys.readouterr().err
    assert not (tmp_path / "x.yaml").exists()


def test_a_topology_gives_the_rate_and_the_nearest_nics(capsys: pytest.CaptureFixture[str]) -> None:
    """The slower NIC of the file is 200 Gbps, and a rate in the log comes first. GPU 0 is beside mlx5_0."""
    for name, rate_bps in (("roce-2.30", 400_000_000_000), ("rccl-2.22", 200_000_000_000)):
        words = ["coll", "explain", str(GOLDEN / f"{name}.log"), "--topology", str(GOLDEN / "topology.txt"), "--json"]
        assert run(words) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["draft"]["rate_bps"] == rate_bps
    assert "# speed in the topology file" in printed["draft"]["text"]
    assert [
        (finding["entity"], finding["actual"], finding["expected"])
        for finding in printed["findings"]
        if finding["id"] == "nccl.far-nic"
    ] == [
        ("GPU 0 of node1", "mlx5_1, at SYS", "mlx5_0, at PIX"),
        ("GPU 1 of node1", "mlx5_0, at SYS", "mlx5_1, at PIX"),
    ]


def test_a_topology_of_another_host_is_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Two GPUs in the file, four on a host of the log: the check did not run, and says why."""
    words = ["coll", "explain", str(GOLDEN / "one-nic-2.26.log"), "--topology", str(GOLDEN / "topology.txt"), "--json"]
    assert run(words) == 0
    (check,) = (one for one in json.loads(capsys.readouterr().out)["checks"] if one["rule"] == "nccl.far-nic")
    assert check["reason"] == "the topology has 2 GPUs, the log 4 a host"


def test_a_topology_is_printed_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output of a job, with its topology among other lines."""
    content = (GOLDEN / "topology.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run(["coll", "topology", "-"]) == 0
    assert capsys.readouterr().out == (
        "2 NUMA nodes, 2 GPUs, 2 NICs\n"
        "GPU           PCI  NUMA  nearest NICs  distance      rate\n"
        "  0  0000:06:00.0     0  mlx5_0        PIX       400 Gbps\n"
        "  1  0000:26:00.0     1  mlx5_1        PIX       200 Gbps\n"
        "note: 3 lines around the topology, left out\n"
    )
    assert run(["coll", "topology", str(GOLDEN / "topology.txt"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [gpu["nics"][0]["distance"] for gpu in printed["gpus"]] == ["PIX", "SYS"]


def test_results_in_a_log_that_need_a_word_do_not_hide_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Among two ranks an all-reduce prints what a send does: the log is explained, and the option named."""
    log = tmp_path / "nccl.log"
    log.write_text(
        "#  Rank  0 Group  0 Pid 1 on a device  0 [0000:06:00] NVIDIA H100\n"
        "#  Rank  1 Group  0 Pid 2 on b device  0 [0000:06:00] NVIDIA H100\n"
        "a:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
        "  1048576        262144     float     sum      -1    100.0   10.49   10.49      0\n"
    )
    assert run(["coll", "explain", str(log)]) == 0
    assert f"results in {log} not read: a run of a program that it does not name" in capsys.readouterr().out
    assert run(["coll", "explain", str(log), "--operation", "all_reduce"]) == 0
    assert "all_reduce of 1.049 MB" in capsys.readouterr().out


def test_timers_of_an_unknown_version_are_a_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """14, 18 and 20 have been NCCL's defaults."""
    log = tmp_path / "nccl.log"
    log.write_text("a:1:1 [0] NCCL INFO Using network IB\n")
    assert run(["coll", "explain", str(log)]) == 0
    assert "timeout 14, 18, 20 by NCCL's version, which is not logged" in capsys.readouterr().out
