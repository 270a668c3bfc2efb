"""The fluid engine under its own name: the same times as `skip: fluid`, and what it does not know said by its key."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import FabrictuneWarning, InputError, ScenarioError
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.transfers import FINISH_BOUNDS, estimator
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.fluid import agreement
from fabrictune.netsim.fluid.agreement import Agreement
from fabrictune.netsim.memory import fluid_bytes
from fabrictune.netsim.skip import skip_lines
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import simulate
from tests.fluid.test_shares import inputs_of, network_of
from tests.skip.runs import make_trace

INCAST = """name: x
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}
traffic: {workload: incast, senders: 7, message: 500 KB}
law: swift
engine: {name: fluid}
"""


def scenario_with(**keys: Any) -> Scenario:
    """Return the incast with other values of some keys, `__` between outer and inner."""
    changes = {name.replace("__", "."): value for name, value in keys.items()}
    return override(parse_scenario(INCAST, Path("x.yaml")), changes, origin="test")


def run_of(**keys: Any) -> RunRecord:
    return simulate(scenario_with(**keys), with_collisions=False)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the cross-check say that runs under Swift take up to a tenth longer, and never less."""
    monkeypatch.setattr(agreement, "AGREEMENTS", {("swift", True): Agreement(low=1.0, high=1.1, num_runs=40)})


def test_one_key_changes_the_engine() -> None:
    """The times are those of `skip: fluid`, which is the spelling of 2 % audits."""
    ours, theirs = run_of(engine__audits="2 %"), run_of(engine={"skip": "fluid"})
    assert (ours.run["engine"], theirs.run["engine"]) == ("fluid", "packet")
    assert ours.run["skip"] == theirs.run["skip"]
    for name, column in theirs.tables["transfers"].items():
        assert np.array_equal(ours.tables["transfers"][name], column), name
    without = run_of().tables["transfers"]
    assert np.array_equal(without["finish_ps"], theirs.tables["transfers"]["finish_ps"])


@pytest.mark.usefixtures("compared")
def test_without_audits_the_last_finish_has_an_interval_and_single_transfers_none() -> None:
    """From factors of the makespan; metrics that follow it have the interval, others are estimates without one."""
    record = run_of(
        expect=[
            {"metric": "makespan", "at_most": "1 s"},
            {"metric": "makespan", "at_most": "144 us"},
            {"metric": "completion_time.p99", "at_most": "1 s"},
            {"metric": "drops", "at_most": 0},
        ]
    )
    fluid = record.run["skip"]["fluid"]
    makespan_ps = METRICS["makespan"].measure(record)
    assert METRICS["makespan"].interval(record) == pytest.approx((makespan_ps, 1.1 * makespan_ps))
    assert fluid["last_finish_low_ps"] == fluid["last_finish_ps"]
    assert fluid["last_finish_high_ps"] == pytest.approx(1.1 * fluid["last_finish_ps"], rel=1e-6)
    assert not set(FINISH_BOUNDS) & set(record.tables["transfers"])
    assert estimator(record) == "the fluid engine"
    checks = [check for check in record.checks or () if check.rule.startswith("expect")]
    assert [check.reason for check in checks[2:]] == [
        "the fluid engine estimates 143.5 us, without an interval; engine: packet measures it",
        "the fluid engine does not know it; engine: packet measures it",
    ]
    assert [finding.actual for finding in record.findings] == ["143.5 us, between 143.5 us and 157.8 us"]
    assert skip_lines(record.run) == [
        "all traffic at max-min shares, 100.0% of the bytes held by others; "
        "interval from 40 runs compared with packets",
        "last finish 143.5 us, between 143.5 us and 157.8 us (95 %); queues, marks and pauses are not known, "
        "nor intervals of single transfers (engine.audits: 2 % gives them)",
    ]


def test_a_law_that_was_not_compared_has_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the run says so."""
    monkeypatch.setattr(agreement, "AGREEMENTS", {})
    record = run_of()
    assert METRICS["makespan"].interval(record) is None
    assert skip_lines(record.run)[1].startswith(
        "last finish 143.5 us, without an interval: no run like it was compared with packets; "
    )


@pytest.mark.usefixtures("compared")
def test_a_part_of_a_mixture_has_not_the_interval_of_the_whole() -> None:
    """The cross-check compares whole runs."""
    parts = [{"name": name, "traffic": {"workload": "incast", "senders": 3, "message": "1 MB"}} for name in "ab"]
    traffic = {"workload": "mix", "parts": [parts[0], {**parts[1], "start": "20 us"}]}
    record = run_of(traffic=traffic, expect=[{"metric": "makespan", "part": "a", "at_most": "1 s"}])
    assert METRICS["makespan"].interval(record) is not None
    reasons = [check.reason for check in record.checks or () if check.rule.startswith("expect")]
    assert "without an interval" in str(reasons[0])


def test_a_law_is_noted() -> None:
    """Its transients are not in the times."""
    notes = run_of().run.get("notes", ())
    assert (
        "law swift: flows have their max-min shares from the first byte on; what it adds (slow starts, cuts and "
        "recoveries, queues) is not in the times" in notes
    )
    assert not any("max-min" in note for note in run_of(law="none").run.get("notes", ()))


def test_telemetry_is_in_the_headers() -> None:
    """HPCC's packets are 1 % longer on the wire, so that a full port ends 1 % later."""
    shorter, longer = (run_of(law=law).tables["transfers"]["finish_ps"].max() for law in ("swift", "hpcc"))
    assert longer / shorter == pytest.approx((4178 + 42) / 4178, rel=2e-3)


def test_what_looks_at_queues_is_left_out_with_a_warning() -> None:
    """With what to do instead."""
    with pytest.warns(FabrictuneWarning) as caught:
        run_of(probe={"interval": "5 us", "ports": "all"}, adapter="connectx-6")
    assert sorted(str(one.message).partition(": ")[2] for one in caught) == [
        "adapter has no effect in the engine 'fluid': no packet is sent again; the engine 'packet' has its timers",
        "probe has no effect in the engine 'fluid': there are no queues to sample; the engine 'packet' has them",
    ]


def test_all_that_shares_do_not_know_is_refused_at_once() -> None:
    """Each by its key, with what is allowed and what to do next."""
    with pytest.raises(InputError) as refused:
        run_of(engine__loss="1 %", engine__path_choice__mode="spray", engine__pfc__enabled=False)
    step = "  next: leave it out, or take `engine: {name: packet, skip: exact}`, which has packets"
    assert str(refused.value).split("\n") == [
        "test: engine.path_choice.mode: spray",
        "  allowed: hash: at max-min shares every transfer has one path",
        step,
        "test: engine.loss: 0.01",
        "  allowed: none: at max-min shares no packet is lost",
        step,
        "test: engine.pfc.enabled: false",
        "  allowed: true: at max-min shares no packet is lost",
        step,
    ]


def test_an_engine_without_packets_skips_none() -> None:
    """`skip` in it is a mistake, and audits are a share."""
    with pytest.raises(InputError, match="off: this engine has no packets to skip"):
        FluidConfig(skip="exact")
    with pytest.raises(InputError, match="0 to 1"):
        FluidConfig(audits_fraction=1.5)


def test_questions_about_packets_refuse_it() -> None:
    """Though its settings are those of the packet engine."""
    with pytest.raises(ScenarioError, match="this question is for the packet engine"):
        scenario_with().packet_config()
    assert scenario_with(engine__mtu="1 KB").wire_config().mtu_bytes == 1000


def test_a_run_without_audits_needs_less_memory() -> None:
    network = network_of([0], [1])
    inputs = inputs_of(network, make_trace([0], [10**6], [0], [[]]))
    assert fluid_bytes(inputs, has_audits=False) < fluid_bytes(inputs)
