"""The Python interface in use: the bundled scenarios, overridden, simulated, compared, saved."""

import json
import warnings
from pathlib import Path

import pytest

import fabrictune as ft

SCENARIOS = Path(__file__).parents[3] / "scenarios"
INCAST = SCENARIOS / "incast.yaml"
SMALL = {
    "name": "small",
    "fabric": {"builder": "fat_tree", "radix": 4},
    "traffic": {"workload": "incast", "message": "64 KB", "senders": 4},
}


def test_a_scenario_from_values_is_the_one_from_the_file() -> None:
    """The same keys give the same run, wherever they come from."""
    import yaml

    from_file = ft.load_scenario(INCAST)
    from_values = ft.make_scenario(yaml.safe_load(INCAST.read_text()))
    assert from_values == from_file


def test_overrides_are_key_paths_with_values_as_in_the_file() -> None:
    """A misspelt key names the overrides, not a line of the file."""
    scenario = ft.load_scenario(INCAST, {"law": "swift", "engine.mtu": "1024 B"})
    assert scenario.law.name == "swift"
    with pytest.raises(ft.InputError, match=r"^overrides: engine\.mtuu: unknown key 'mtuu'"):
        ft.load_scenario(INCAST, {"engine.mtuu": "1024 B"})


def test_a_simulation_is_a_record_that_can_be_saved_read_and_shown(tmp_path: Path) -> None:
    """From values to the page, without a file in between but the record's own."""
    record = ft.simulate(ft.make_scenario(SMALL), {"law": "dcqcn"})
    record.write(tmp_path / "run")
    again = ft.read_record(tmp_path / "run")
    assert json.loads(again.run["scenario"])["name"] == "small"
    assert again.tables["transfers"]["finish_ps"].tolist() == record.tables["transfers"]["finish_ps"].tolist()
    page = ft.write_page([record, again], tmp_path / "pages" / "small.html", labels=["now", "read again"])
    assert "read again" in page.read_text()


def test_collisions_variants_and_links_are_studied(tmp_path: Path) -> None:
    """The records that `ecmp analyze` and `ecmp whatif` make, and the explanation of the busiest link."""
    scenario = ft.load_scenario(SCENARIOS / "demo-interleaved.yaml")
    assert (ft.analyze(scenario).tables["collisions"]["port"] >= 0).any()
    assert ft.explain_link(scenario).load_fraction == 2
    compared = ft.compare_variants(scenario, {"contiguous": {"traffic.placement": "contiguous"}}, num_seeds=2)
    assert compared.tables["variants"]["variant"].tolist() == ["as it is", "contiguous"]
    assert {"steps", "source_ports"} <= set(ft.plan_placement(scenario, num_seeds=2).tables)


def test_a_sweep_is_resumed_in_its_folder(tmp_path: Path) -> None:
    """The second call finds every run done."""
    (tmp_path / "small.yaml").write_text(json.dumps(SMALL))
    sweep = {
        "name": "s",
        "scenario": "small.yaml",
        "vary": [{"key": "traffic.message", "values": ["16 KB", "64 KB"]}],
        "seeds": 1,
        "objectives": [{"metric": "makespan"}],
    }
    (tmp_path / "sweep.yaml").write_text(json.dumps(sweep))
    records = [ft.sweep(tmp_path / "sweep.yaml", tmp_path / "out", num_workers=1) for _ in range(2)]
    values = [record.tables["objectives"]["value"].tolist() for record in records]
    assert values[0] == values[1]
    assert values[0][0] < values[0][1]


def test_fabrics_are_built_saved_and_loaded(tmp_path: Path) -> None:
    """A saved fabric loses nothing; mistakes in settings are reported together."""
    fabric = ft.build_fabric("fat_tree", radix=4, link_rate="400 Gbps")
    again = ft.load_fabric(ft.save_fabric(fabric, tmp_path / "k.json"))
    assert again.port_rate_bps_P.tolist() == fabric.port_rate_bps_P.tolist()
    with pytest.raises(ft.InputError, match=r"radx(?s:.*)link_rate"):
        ft.build_fabric("fat_tree", radx=4, link_rate=400)


def test_assumptions_of_an_importer_are_warnings(tmp_path: Path) -> None:
    """A cabling list without rates: the rate that is taken is said."""
    (tmp_path / "cables.csv").write_text("a_node,a_port,b_node,b_port\nleaf1,swp1,host1,eth0\nleaf1,swp2,host2,eth0\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ft.load_fabric(tmp_path / "cables.csv")
    assert {warning.category for warning in caught} == {ft.FabrictuneWarning}
    assert "2 links have no speed; assuming 100 Gbps" in [str(warning.message) for warning in caught]


def test_a_job_is_planned_without_a_cluster() -> None:
    """The tiny recipe on faster NICs: the same bytes in less time."""
    pytest.importorskip("torch")
    slow, fast = (ft.plan_job("tiny", nic_rate_bps=rate, gpus_per_host=1) for rate in (100e9, 400e9))
    assert slow.tables["volumes"]["sent_bytes"].tolist() == fast.tables["volumes"]["sent_bytes"].tolist()
    assert slow.tables["volumes"]["duration_ps"].sum() > fast.tables["volumes"]["duration_ps"].sum()


def test_a_sites_rules_judge_a_record(tmp_path: Path) -> None:
    """A file with severities and thresholds, which the record names."""
    (tmp_path / "site.yaml").write_text("rules: {ecmp.link-overloaded: {error_load: 300 %}}")
    record = ft.analyze(SCENARIOS / "permutation.yaml", rules=tmp_path / "site.yaml")
    assert {finding.severity for finding in record.findings} == {ft.Severity.WARNING}
    assert record.run["rules"]["thresholds"] == {"ecmp.link-overloaded": {"error_load": "300 %"}}
