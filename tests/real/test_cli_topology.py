"""`topo import` and `topo show` on public topology files, with the counts that a script found in them."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("files", "num_links"),
    [
        (["clab/clos02.clab.yml"], 16),
        (["clab/basic-clab-sonic-l2-evpn.clab.yml"], 4),
        (["sonic/t0-s6000.config_db.json"], 28),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_public_topology_is_imported_saved_and_shown(
    files: list[str], num_links: int, real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The links in the file are the links of the fabric, and the saved fabric is shown the same."""
    saved = tmp_path / "fabric.json"
    assert run(["topo", "import", *(str(real_data / name) for name in files), "--out", str(saved), "--json"]) == 0
    imported = json.loads(capsys.readouterr().out)
    assert imported["links"] == num_links
    assert run(["topo", "show", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == imported


def test_a_question_can_be_asked_of_a_public_topology(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every client of a public three-tier lab sends 1 MB to another: all arrive, and nothing is dropped."""
    scenario = tmp_path / "lab.yaml"
    scenario.write_text(
        f"name: lab\nfabric: {{file: {real_data / 'clab/clos02.clab.yml'}}}\n"
        "traffic: {workload: permutation, message: 1 MB}\nlaw: dcqcn\nexpect: [{metric: drops, at_most: 0}]\n"
    )
    assert run(["sim", "run", str(scenario), "--out", str(tmp_path / "record"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["num_transfers"] == 4
    assert result["metrics"]["makespan"]["value"] > 0


@pytest.mark.parametrize(
    ("file", "num_hosts"), [("clab/clos02.clab.yml", 4), ("sonic/t0-s6000.config_db.json", 24)], ids=["lab", "tor"]
)
def test_the_demo_job_runs_on_a_public_topology(
    file: str, num_hosts: int, real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both placements of a ring over all hosts: 2 (n - 1) n chunks arrive, and one page compares the two."""
    records = []
    for placement in ("interleaved", "contiguous"):
        scenario = tmp_path / f"{placement}.yaml"
        scenario.write_text(
            f"name: {placement}\nfabric: {{file: {real_data / file}}}\nlaw: dcqcn\n"
            f"traffic: {{workload: all_reduce, layout: {{dp: {num_hosts}}}, gpus_per_host: 1, message: 1 MB,\n"
            f"          placement: {placement}}}\n"
        )
        records.append(tmp_path / placement)
        assert run(["sim", "run", str(scenario), "--out", str(records[-1]), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["num_transfers"] == 2 * (num_hosts - 1) * num_hosts
    page = tmp_path / "report.html"
    assert run(["report", "build", *map(str, records), "--out", str(page)]) == 0
    assert "interleaved" in page.read_text()
