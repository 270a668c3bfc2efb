"""Engines: chosen by name, each with its own settings, and told apart from what means nothing to them."""

from collections.abc import MutableMapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import FabrictuneWarning, ScenarioError
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.settings import setting
from fabrictune.netsim.engines import ENGINES, Engine
from fabrictune.netsim.faults.timeline import FaultTimeline
from fabrictune.reports.page import write_page
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import ENGINE_CHOICE, Scenario
from fabrictune.studies.run_summary import summarize
from fabrictune.studies.simulation import simulate
from fabrictune.topology.ecmp.collisions import analyze_collisions
from fabrictune.topology.files import fabric_table
from fabrictune.topology.network import Network

SCENARIOS = Path(__file__).parents[3] / "scenarios"
HEAD = "name: short\nfabric: {builder: fat_tree, radix: 4}\ntraffic: {workload: incast, senders: 3, message: 1 MB}\n"
LAW, PROBE = "law: dcqcn\n", "probe: {interval: 5 us, ports: all}\n"


@dataclass(frozen=True, kw_only=True)
class FairConfig:
    """Settings of the engine below."""

    efficiency_fraction: float = setting(1.0, "share of a link's rate that is payload")
    time_limit_ns: int | None = setting(None, "simulated time after which the run ends")


def run_fair(
    network: Network,
    traffic: TrafficTrace,
    law: Any,
    config: FairConfig,
    *,
    seed: int,
    probe: ProbeConfig | None,
    capture: CaptureConfig | None,
    faults: FaultTimeline,
    rules: RuleSettings,
    progress: Progress | None,
) -> RunRecord:
    """Return the record of transfers that share every link max-min fairly from beginning to end."""
    assert (law, probe, capture, faults.faults) == (None, None, None, ()), "what it ignores never reaches it"
    rate_bps_N = analyze_collisions(network).fair_rates()[traffic.qp_N] * config.efficiency_fraction
    ready_ps_N = np.maximum(traffic.start_ps_N, 0)
    transfers = {
        "transfer": np.arange(len(traffic)),
        "qp": traffic.qp_N,
        "source": traffic.source_N,
        "destination": traffic.destination_N,
        "bytes": traffic.bytes_N,
        "ready_ps": ready_ps_N,
        "finish_ps": ready_ps_N + np.rint(traffic.bytes_N * 8e12 / rate_bps_N).astype(np.int64),
    }
    return RunRecord(
        kind="sim run",
        run=describe_run(seed=seed, started=0, engine="fair", outcome="finished", is_partial=False),
        tables={"fabric": fabric_table(network.fabric), "transfers": transfers},
    )


@pytest.fixture
def fair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the engine into the table, with the choice that is made of the table at import."""
    ignores = frozenset({"law", "adapter", "probe", "capture", "faults", "convergence_delay"})
    engine = Engine(spec=FairConfig, run=run_fair, ignores=ignores)
    monkeypatch.setitem(cast(MutableMapping[str, Engine], ENGINES), "fair", engine)
    monkeypatch.setitem(cast(MutableMapping[str, type], ENGINE_CHOICE.specs), "fair", FairConfig)


def load(folder: Path, rest: str) -> Scenario:
    """Return a scenario with these lines."""
    (folder / "short.yaml").write_text(HEAD + rest)
    return load_scenario(folder / "short.yaml")


@pytest.mark.parametrize(
    ("line", "mtu_bytes"),
    [
        ("", 4096),
        ("engine: packet\n", 4096),
        ("engine: {mtu: 1 KB}\n", 1000),
        ("engine: {name: packet, mtu: 1 KB}\n", 1000),
    ],
)
def test_the_packet_engine_is_the_one_without_a_name(line: str, mtu_bytes: int, tmp_path: Path) -> None:
    """Named or not, it has the same settings."""
    scenario = load(tmp_path, line)
    assert scenario.engine.name == "packet"
    assert scenario.packet_config() == PacketConfig(mtu_bytes=mtu_bytes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("engine: pakcet\n", "4: engine.name: unknown name 'pakcet'\n  did you mean 'packet'?\n  allowed: packet"),
        ("engine: {mtuu: 1 KB}\n", "4: engine.mtuu: unknown key 'mtuu'\n  did you mean 'mtu'?"),
        (
            "engine: {ecn: {kmin: 5 MB, kmax: 1600000 B}}\n",
            "4: engine.ecn.kmax: 1600000 B\n  allowed: above 5000000, up to 1000000000000000 B",
        ),
    ],
)
def test_a_mistake_about_an_engine_has_its_line(line: str, message: str, tmp_path: Path) -> None:
    """As one about any other choice."""
    with pytest.raises(ScenarioError) as refused:
        load(tmp_path, line)
    assert str(refused.value).replace(f"{tmp_path}/short.yaml:", "").startswith(message)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_ignores_are_settings_with_a_default(engine: str) -> None:
    """Fabric and traffic have none: every engine needs them."""
    optional = {key_of(one.name) for one in fields(Scenario)} - {"name", "fabric", "traffic", "engine", "document"}
    assert ENGINES[engine].ignores <= optional


@pytest.mark.usefixtures("fair")
def test_an_engine_of_ones_own_runs_a_bundled_scenario() -> None:
    """Eight senders of 1 MB share 400 Gbps: 50 Gbps each, 160 us; what the engine does not write is unknown."""
    scenario = override(load_scenario(SCENARIOS / "incast.yaml"), {"engine": "fair"}, origin="test")
    record = simulate(scenario)
    assert record.tables["transfers"]["finish_ps"].tolist() == [160_000_000] * 8
    assert [(finding.entity, finding.actual) for finding in record.findings] == [
        ("tor0:down0 -> host0:nic0", "8 flows offer 3.2 Tbps, 8 of them of a declared incast"),
        ("completion_time.max", "160 us"),
        ("drops", "unknown"),
    ]
    assert summarize(record).metrics["makespan"] == 160_000_000


@pytest.mark.usefixtures("fair")
def test_the_page_shows_what_such_an_engine_writes(tmp_path: Path) -> None:
    """Completion times and findings; a dash where packets would be counted."""
    scenario = override(load_scenario(SCENARIOS / "incast.yaml"), {"engine": "fair"}, origin="test")
    page = write_page([simulate(scenario).write(tmp_path / "run")])
    assert "Flow completion times" in page.read_text()


@pytest.mark.usefixtures("fair")
def test_a_setting_without_effect_warns_with_its_line(tmp_path: Path) -> None:
    """One warning for each, and none for what has its default."""
    scenario = load(tmp_path, "engine: {name: fair, efficiency: 50 %}\n" + LAW + PROBE)
    with pytest.warns(FabrictuneWarning) as caught:
        record = simulate(scenario)
    assert [str(one.message) for one in caught] == [
        f"{tmp_path}/short.yaml:5: law has no effect in the engine 'fair'",
        f"{tmp_path}/short.yaml:6: probe has no effect in the engine 'fair'",
    ]
    assert record.tables["transfers"]["finish_ps"].tolist() == [480_000_000] * 3  # 3 MB at half of 100 Gbps
    assert "law: dcqcn" in record.run["scenario"]


@pytest.mark.usefixtures("fair")
def test_what_needs_packets_refuses_another_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Timers are those of packets."""
    load(tmp_path, "engine: fair\n")
    assert run(["rdma", "timers", "simulate", str(tmp_path / "short.yaml")]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path}/short.yaml:4: engine: the engine 'fair'\n"
        "  allowed: packet\n"
        "  next: this question is for the packet engine\n"
    )
