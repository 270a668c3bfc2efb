"""`fabrictune train plan` as a user meets it, and what the other commands make of its trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run

pytest.importorskip("torch")

Output = pytest.CaptureFixture[str]
SCENARIO = """
name: planned
fabric: {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 8, tiers: 2}
traffic: {workload: comm_trace, file: plan/job_trace.parquet, layout: {tp: 2, pp: 2, dp: 16}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plan of 64 ranks, whose GPUs compute longer than they send."""
    folder = tmp_path_factory.mktemp("plan")
    arguments = ["train", "plan", "tiny", "--set", "degrees.layout.dp=16", "--tflops", "1", "--quiet"]
    assert run([*arguments, "--out", str(folder / "plan")]) == 0
    (folder / "planned.yaml").write_text(SCENARIO)
    return folder


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def output(capsys: Output) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_plan_is_one_json_value(capsys: Output) -> None:
    """Rank 40 is (tp 0, dp 4, pp 1): the second half of the pipeline."""
    arguments = ["train", "plan", "tiny", "--set", "degrees.layout.dp=16", "--rank", "40", "--out", "again", "--json"]
    assert run(arguments) == 0
    found = output(capsys)
    assert (found["num_ranks"], found["num_tokens"], found["rank"]) == (64, 16 * 4 * 2 * 64, 40)
    assert {row["place"] for row in found["volumes"]} == {1}
    assert {row["axis"] for row in found["volumes"]} == {"tp", "dp", "pp"}
    parts = ["products", "memory traffic", "bubble", "added by tp", "added by dp", "added by pp", "step"]
    assert [row["part"] for row in found["step"]] == parts


def test_a_rank_that_is_not_there_is_refused(capsys: Output) -> None:
    """Before anything is planned."""
    assert run(["train", "plan", "tiny", "--rank", "8"]) == 2
    assert capsys.readouterr().err == "rank: 8\n  allowed: 0 to 7\n"


def test_its_trace_counts_all_ranks(capsys: Output) -> None:
    """A sum of gradients for each of two stages, on each of 64 ranks; as many written out."""
    assert run(["trace", "show", "plan/job_trace.parquet", "--json"]) == 0
    planned = output(capsys)
    assert run(["trace", "import", "plan/job_trace.parquet", "--out", "written.parquet", "--json"]) == 0
    assert output(capsys) == planned
    assert planned["ranks"] == 64
    assert planned["operations"]["send"] == planned["operations"]["receive"]


def test_its_flows_are_those_of_its_requests(capsys: Output) -> None:
    """Added up, or written out and then added up."""
    assert run(["trace", "import", "plan/job_trace.parquet", "--out", "written.parquet"]) == 0
    Path("written.yaml").write_text(SCENARIO.replace("plan/job_trace", "written"))
    capsys.readouterr()
    found = []
    for name in ("planned", "written"):
        assert run(["ecmp", "analyze", f"{name}.yaml", "--out", name, "--json", "--fail-on", "never"]) == 0
        found.append({key: value for key, value in output(capsys).items() if key != "record"})
    assert found[0] == found[1]


def test_more_than_a_gpu_holds_is_a_finding(capsys: Output) -> None:
    """Place 0 keeps most activations, 2.3 MB in all."""
    arguments = ["train", "plan", "tiny", "--memory", "2 MB", "--out", "large", "--json"]
    assert run(arguments) == 1
    (finding,) = output(capsys)["findings"]
    assert finding["id"] == "train.memory-exceeded"
    assert finding["entity"] == "GPUs at place 0 of the pipeline"
    assert run([*arguments[:4], "3 MB", *arguments[5:]]) == 0
    assert output(capsys)["findings"] == []
