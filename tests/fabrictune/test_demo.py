"""The bundled comparison of two placements."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.demo import run_demo
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.bundled import bundled_path
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario


def test_the_two_scenarios_differ_in_the_placement_alone() -> None:
    """Fabric, routing, law, message and engine are the same, so that only the placement can make the difference."""
    bad, good = (load_scenario(bundled_path(f"demo-{name}")) for name in ("interleaved", "contiguous"))
    assert (bad.fabric, bad.routing, bad.law, bad.engine, bad.seed) == (
        good.fabric, good.routing, good.law, good.engine, good.seed,
    )  # fmt: skip
    assert bad.traffic.spec.message_bytes == good.traffic.spec.message_bytes
    assert (bad.traffic.spec.placement, good.traffic.spec.placement) == ("interleaved", "contiguous")


def test_the_fabric_is_megascales_in_small() -> None:
    """16 servers of 8 rails, 4 to a ToR set: 128 GPUs and 4 x 8 = 32 ToRs, two 200G NICs to a 400G port."""
    network = compose(load_scenario(bundled_path("demo-contiguous"))).network
    fabric = network.fabric
    assert fabric.num_nics == 128
    assert int((fabric.node_tier_N == 1).sum()) == 32
    assert set(fabric.port_rate_bps_P.tolist()) == {200 * 10**9, 400 * 10**9}


def test_the_bad_placement_collides_and_the_good_one_does_not(tmp_path: Path) -> None:
    """Interleaved rings climb at every step; contiguous ones at one of four, and end near the ring's bound.

    The bound: 2 x 15/16 x 16 MB is 30 MB a NIC, in packets of 4,096 B with 82 B each, at 200 Gbps: 1.224 ms.
    """
    told: list[float] = []
    demo = run_demo(tmp_path, lambda fraction, note="", /: told.append(fraction))
    bound_ps = 30_000_000 * (4096 + 82) / 4096 * 8 / 200e9 * 1e12
    assert demo.bad.collisions.num_overloaded_links > 10
    assert demo.good.collisions.num_overloaded_links == 0
    assert bound_ps < demo.good.run.metrics["makespan"] < 1.1 * bound_ps
    assert demo.bad.run.metrics["makespan"] > 2 * demo.good.run.metrics["makespan"]
    assert demo.bad.run.metrics["drops"] == demo.good.run.metrics["drops"] == 0
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert demo.page.read_text().count("demo-") > 0
    bad = RunRecord.read(tmp_path / "interleaved")
    assert {"transfers", "loads", "collisions"} <= set(bad.tables)
    assert len(demo.bad.links) == demo.bad.collisions.num_overloaded_links == 50
    assert [finding for finding in bad.findings if finding.id.startswith("ecmp.")] == list(demo.bad.links)


def test_the_command_prints_the_comparison_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with a column a placement, the worst links by name, and where the page is."""
    assert run(["demo", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "interleaved  contiguous" in printed
    assert " -> " in printed
    assert f"page: {tmp_path / 'report.html'}" in printed
    assert run(["demo", "--out", str(tmp_path), "--json"]) == 0
    assert [case["placement"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["interleaved", "contiguous"]
