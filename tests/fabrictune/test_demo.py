"""The demo: two placements, three laws, a training where one can be, and one page."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.demonstration import training
from fabrictune.demonstration.page import write_demo_page
from fabrictune.demonstration.simulations import simulate_job
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.network_namespaces import list_namespaces
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.bundled import bundled_path
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from tests.real.namespaces import require_namespaces

MAX_PAGE_BYTES = 500_000


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
    demo = simulate_job(tmp_path, lambda fraction, note="", /: told.append(fraction))
    bound_ps = 30_000_000 * (4096 + 82) / 4096 * 8 / 200e9 * 1e12
    assert demo.bad.collisions.num_overloaded_links > 10
    assert demo.good.collisions.num_overloaded_links == 0
    assert bound_ps < demo.good.run.metrics["makespan"] < 1.1 * bound_ps
    assert demo.bad.run.metrics["makespan"] > 2 * demo.good.run.metrics["makespan"]
    assert demo.bad.run.metrics["drops"] == demo.good.run.metrics["drops"] == 0
    assert told == sorted(told)
    assert told[-1] == 1.0
    bad = RunRecord.read(tmp_path / "interleaved")
    assert {"transfers", "loads", "collisions"} <= set(bad.tables)
    assert len(demo.bad.links) == demo.bad.collisions.num_overloaded_links == 50
    assert [finding for finding in bad.findings if finding.id.startswith("ecmp.")] == list(demo.bad.links)
    assert [run.law for run in demo.laws] == ["swift", "hpcc"]
    makespans = [run.metrics["makespan"] for run in (demo.bad.run, *(law.run for law in demo.laws))]
    assert len(set(makespans)) == 3
    assert min(makespans) > 2 * demo.good.run.metrics["makespan"]
    text = write_demo_page(demo, None, tmp_path / "report.html").read_text()
    assert "interleaved, hpcc" in text


def test_the_command_prints_the_comparison_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with a column a placement, the worst links by name, the laws, and where the page is."""
    assert run(["demo", "--no-training", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "interleaved  contiguous" in printed
    assert " -> " in printed
    assert "dcqcn_firmware      swift        hpcc" in printed
    assert f"page: {tmp_path / 'report.html'}" in printed
    assert run(["demo", "--no-training", "--out", str(tmp_path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [case["placement"] for case in values["cases"]] == ["interleaved", "contiguous"]
    assert [law["law"] for law in values["laws"]] == ["swift", "hpcc"]
    assert values["training"] is None


@pytest.mark.real
def test_eight_ranks_train_on_a_testbed_and_the_slow_link_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step is beside its prediction, the link that is slowed in mid-run is a finding, and the page is small."""
    require_namespaces()
    pytest.importorskip("torch")
    assert run(["demo", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "step 12: " in printed
    assert printed.index("planted: host3:nic0 -> tor0:down3") < printed.index("alarm: host3:nic0 -> tor0:down3: busy")
    assert "[testbed.link-busy]" in printed
    page = (tmp_path / "report.html").read_text()
    assert len(page.encode()) < MAX_PAGE_BYTES
    HTMLParser().feed(page)
    assert "Steps beside their prediction" in page
    assert not [name for name in list_namespaces() if name.startswith("ftb-demo-")]


def test_without_namespaces_the_loopback_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is said first; two ranks and three steps stand for the eight and twenty."""
    pytest.importorskip("torch")

    def refuse(*args: object, **options: object) -> None:
        raise UnavailableError(Mistake(where="network namespaces", found="need root"))

    monkeypatch.setattr(training, "temporary_testbed", refuse)
    layout = {f"degrees.layout.{axis}": 1 for axis in ("tp", "pp")}
    monkeypatch.setattr(training, "SETTINGS", {**layout, "degrees.virtual": 1, "num_steps": 3})
    said: list[str] = []
    trained = training.train_job(tmp_path / "training", said.append)
    assert said[0] == "no testbed, so over this machine's loopback: network namespaces: need root"
    assert [line.split(":")[0] for line in said[1:]] == ["step 0", "step 1", "step 2"]
    assert trained is not None
    assert RunRecord.read(trained.directory).run["place"] == "this machine's loopback"


def test_without_torch_it_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra to install is named."""

    def refuse(*args: object, **options: object) -> None:
        raise UnavailableError(Mistake(where="training", found="torch is not installed", next_step="pip install it"))

    monkeypatch.setattr(training, "require_extra", refuse)
    said: list[str] = []
    assert training.train_job(tmp_path / "training", said.append) is None
    assert said == ["not trained: training: torch is not installed\n  next: pip install it"]
