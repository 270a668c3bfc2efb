"""`fabrictune ecmp` as a user and a script meet it: tables, JSON, files and exit codes."""

import json
import shutil
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord

RINGS = """
name: rings
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 4, nics_per_host: 8, tiers: 2}
traffic: {workload: neighbours, layout: {tp: 8, dp: 16}, placement: interleaved}
factors:
  - {name: placement, low: {traffic.placement: interleaved}, high: {traffic.placement: contiguous}}
"""
ONE_SIDED = """a_device,a_port,b_device,b_port,a_role,b_role
host0,nic0,tor0,1,server,leaf
tor0,1,host0,nic0,leaf,server
host1,nic0,tor0,2,server,leaf
tor0,2,host1,nic0,leaf,server
host2,nic0,tor0,3,server,leaf
"""
Output = pytest.CaptureFixture[str]


@pytest.fixture
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a scenario in a folder of its own, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rings.yaml"
    path.write_text(RINGS)
    return path


def test_explain_names_ranks_and_choices(rings: Path, capsys: Output) -> None:
    """Four flows of one rail on one uplink, each with its ranks and the choice that brought it there."""
    assert run(["ecmp", "explain", str(rings), "tor0-5:up0"]) == 0
    headline, columns, *flows = capsys.readouterr().out.splitlines()
    assert headline.startswith("tor0-5:up0 -> agg0-0:down5: ")
    assert columns.split()[:3] == ["qp", "from", "to"]
    assert flows
    assert all(":nic5" in flow and flow.endswith("tor0-5:up0 (1 of 2)") for flow in flows)


def test_explain_without_a_link_takes_the_worst(rings: Path, capsys: Output) -> None:
    """Twice its rate is the most that four flows of 200G can ask of 400G."""
    assert run(["ecmp", "explain", str(rings), "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["demand_bps"] == 2 * explained["rate_bps"]
    assert len(explained["flows"]) == 4
    assert {hop["num_choices"] for flow in explained["flows"] for hop in flow["hops"]} == {1, 2}


def test_explain_guesses_what_was_meant(rings: Path, capsys: Output) -> None:
    """A mistake in a link's name is a usage error."""
    assert run(["ecmp", "explain", str(rings), "tor0-5:upp0"]) == 2
    assert "did you mean 'up0'?" in capsys.readouterr().err


def test_whatif_compares_in_one_table(rings: Path, capsys: Output, tmp_path: Path) -> None:
    """A row for the scenario, for a setting, and for a failure; the record has the same rows."""
    arguments = ["--set", "traffic.placement=contiguous", "--fail", "agg0-1", "--seeds", "10", "--quiet"]
    assert run(["ecmp", "whatif", str(rings), *arguments]) == 0
    shown = capsys.readouterr().out
    names = ["as it is", "traffic.placement=contiguous", "without agg0-1"]
    assert [line[:28].strip() for line in shown.splitlines()[2:5]] == names
    assert "50.0 ± 0.0 %" in shown.splitlines()[4]
    assert RunRecord.read(tmp_path / "runs" / "rings-whatif").tables["variants"]["variant"].tolist() == names


def test_whatif_as_json_has_figures_and_intervals(rings: Path, capsys: Output) -> None:
    """One object a variant, names as in the record."""
    assert run(["ecmp", "whatif", str(rings), "--seeds", "5", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["variants"]
    assert row["variant"] == "as it is"
    assert 0 < row["throughput_fraction_low"] < row["throughput_fraction"] < row["throughput_fraction_high"] < 1


def test_a_mistaken_variant_is_exit_code_2(rings: Path, capsys: Output) -> None:
    """The message names the option's text."""
    assert run(["ecmp", "whatif", str(rings), "--set", "traffic.placment=random"]) == 2
    assert "did you mean 'placement'?" in capsys.readouterr().err


def test_factorial_prints_designs_and_effects(rings: Path, capsys: Output) -> None:
    """One factor: two designs and one effect; the other way round as JSON."""
    assert run(["ecmp", "factorial", str(rings), "--seeds", "5", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["design", "none", "placement", "effect", "placement"]
    assert run(["ecmp", "factorial", str(rings), "--seeds", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["design"] for row in found["designs"]] == ["none", "placement"]
    assert {row["effect"] for row in found["effects"]} == {"placement"}


def test_plan_writes_what_can_be_applied(rings: Path, capsys: Output, tmp_path: Path) -> None:
    """Steps with their gains, settings to change, and a table of ranks and one of ports."""
    assert run(["ecmp", "plan", str(rings), "--out", str(tmp_path / "plan"), "--seeds", "5"]) == 0
    shown = capsys.readouterr().out
    assert "placement: contiguous" in shown
    assert (tmp_path / "plan" / "placement.csv").read_text().startswith("rank,host,gpu,nic\n0,host0,0,host0:nic0\n")
    assert (tmp_path / "plan" / "source_ports.csv").is_file()
    assert run(["ecmp", "plan", str(rings), "--out", str(tmp_path / "plan"), "--seeds", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [Path(file).name for file in found["files"]] == ["plan", "placement.csv", "source_ports.csv", "planned.yaml"]


def test_analyze_tells_what_unknown_seeds_would_do(rings: Path, capsys: Output, tmp_path: Path) -> None:
    """Beside the links of the scenario's own seeds stands the distribution over others."""
    arguments = ["ecmp", "analyze", str(rings), "--seeds", "20", "--fail-on", "never"]
    assert run(arguments) == 0
    assert "of unknown hash seeds, from 20 of them:" in capsys.readouterr().out
    assert run([*arguments, "--json"]) == 0
    over_seeds = json.loads(capsys.readouterr().out)["over_seeds"]
    assert over_seeds["num_seeds"] == 20
    assert 0.6 < over_seeds["throughput_fraction"] < 0.9
    shutil.rmtree(tmp_path / "runs")
    assert run(["ecmp", "analyze", str(rings), "--fail-on", "never", "--json"]) == 0
    assert "over_seeds" not in json.loads(capsys.readouterr().out)


def test_rates_are_max_min_fair(rings: Path, capsys: Output) -> None:
    """Fair sharing gives at least what proportional sharing does, and the slowest no less."""
    assert run(["ecmp", "analyze", str(rings), "--fail-on", "never", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mean_throughput_fraction"] * 200e9 - 1 <= found["mean_fair_rate_bps"] < 200e9
    assert found["min_throughput_fraction"] * 200e9 - 1 <= found["min_fair_rate_bps"]


def test_tiers_that_hash_alike_are_found(tmp_path: Path, capsys: Output) -> None:
    """One CRC with one seed in every switch: the second tier repeats the first one's choice, and uses one uplink."""
    scenario = tmp_path / "polarized.yaml"
    scenario.write_text("""
name: polarized
fabric: {builder: fat_tree, radix: 4}
routing: {function: crc32, seed_per_switch: false}
traffic: {workload: permutation, message: 1 MB}
""")
    run(["ecmp", "analyze", str(scenario), "--json", "--out", str(tmp_path / "record")])
    assert "ecmp.polarized-tiers" in {finding["id"] for finding in json.loads(capsys.readouterr().out)["findings"]}


def test_what_a_fabric_file_says_amiss_stays_with_the_answer(tmp_path: Path, capsys: Output) -> None:
    """A cable that one end alone lists is a finding of the importer, and of every analysis of its fabric."""
    (tmp_path / "rack.csv").write_text(ONE_SIDED)
    scenario = tmp_path / "rack.yaml"
    scenario.write_text("""
name: rack
fabric: {builder: file, file: rack.csv}
traffic: {workload: permutation, message: 1 MB}
""")
    for command in ("ecmp analyze", "sim run"):
        run([*command.split(), str(scenario), "--json", "--out", str(tmp_path / command)])
        assert "cabling.one-sided" in {finding["id"] for finding in json.loads(capsys.readouterr().out)["findings"]}
