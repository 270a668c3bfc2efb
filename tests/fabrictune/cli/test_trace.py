"""`fabrictune trace` as a user meets it: foreign traces in, ours and Chakra's out, and a scenario that runs one."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run

HEAD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8 pp_comm 0"
LAYER = "layer -1 10 ALLREDUCE 1000 1 NONE 0 7 ALLGATHER 8000 5"
SCENARIO = """
name: replay
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}
traffic: {workload: comm_trace, file: FILE, layout: {tp: 2, dp: 2}}
"""
Output = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a workload in it, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workload.txt").write_text(f"{HEAD}\n1\n{LAYER}\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_show_counts(capsys: Output) -> None:
    """Eight ranks, each with one all-reduce and one all-gather."""
    assert run(["trace", "show", "workload.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "ranks": 8,
        "groups": 6,
        "operations": {
            "all_reduce": {"requests": 8, "bytes": 8000},
            "all_gather": {"requests": 8, "bytes": 64_000},
        },
        "notes": [],
    }


@pytest.mark.usefixtures("folder")
def test_every_form_of_a_trace_says_the_same(capsys: Output) -> None:
    """The workload, the Parquet file made of it, and the Chakra traces made of that."""
    assert run(["trace", "import", "workload.txt", "--ranks", "4", "--out", "step.parquet"]) == 0
    shown = capsys.readouterr().out
    note = "note: workload.txt: 4 of the stage's 8 ranks are read\n"
    assert shown.endswith(note)
    assert run(["trace", "export", "step.parquet", "--out", "chakra"]) == 0
    assert capsys.readouterr().out == f"4 files in chakra\n{note}"
    assert run(["trace", "show", "chakra"]) == 0
    assert capsys.readouterr().out == shown.removesuffix(note)


@pytest.mark.parametrize("form", ["workload.txt", "step.parquet", "chakra"])
def test_a_scenario_runs_it(form: str, folder: Path, capsys: Output) -> None:
    """All forms give one answer: two all-reduces of pairs are 4 messages each, two all-gathers 2 each."""
    run(["trace", "import", "workload.txt", "--ranks", "4", "--out", "step.parquet"])
    run(["trace", "export", "step.parquet", "--out", "chakra"])
    (folder / "replay.yaml").write_text(SCENARIO.replace("FILE", form))
    capsys.readouterr()
    assert run(["sim", "run", "replay.yaml", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["num_transfers"], result["findings"]) == (2 * 4 + 2 * 2, [])


@pytest.mark.usefixtures("folder")
def test_what_is_no_trace_is_said_so(capsys: Output) -> None:
    """With the formats there are."""
    Path("notes.md").write_text("hello")
    assert run(["trace", "show", "notes.md"]) == 2
    assert "kineto: PyTorch profiler traces" in capsys.readouterr().err
