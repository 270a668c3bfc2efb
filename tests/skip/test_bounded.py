"""Bounded skip: intervals hold the exact run, audits are honest, and what is not known is absent."""

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.packet import run as run_packets
from fabrictune.netsim.skip import skip_lines
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.recording import Record
from tests.skip.runs import LAWS, make_trace, random_run, results
from tests.skip.trains import TRAINS

NUM_HOSTS, NUM_PAIRS, NUM_ROUNDS = 8, 3, 16
BOUNDED = {"skips_repeats": True, "skips_at_mean_rates": True, "skip_precision": 0.1}
CONFIG = PacketConfig(skip="bounded", skip_precision_fraction=0.1)


def contended() -> tuple[Network, Any]:
    """Return three pairs on one uplink, each with a row of long messages, one behind another."""
    fabric = build_clos(
        ClosSpec(
            num_hosts=NUM_HOSTS,
            hosts_per_tor_set=NUM_HOSTS // 2,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=400 * 10**9,
            uplink_rate_bps=400 * 10**9,
            downlink_split=1,
            uplinks_per_tor=1,
            host_cable_mm=3_000,
        )
    )
    source_Q = np.arange(NUM_PAIRS)
    network = build_network(fabric, make_queue_pairs(source_Q, source_Q + 4), HashSpec())
    qp_N = np.tile(source_Q, NUM_ROUNDS)
    bytes_N = 30_000_000 + 3_000_000 * qp_N
    waits = [[row - NUM_PAIRS] if row >= NUM_PAIRS else [] for row in range(len(qp_N))]
    return network, make_trace(qp_N, bytes_N, np.zeros(len(qp_N), np.int64), waits)


def inputs_of(law: str) -> EngineInputs:
    network, traffic = contended()
    return make_engine_inputs(network, traffic, LAWS[law], PacketConfig(), seed=3, probe=None, capture=None, faults=())


def finished(inputs: EngineInputs, law: str, **settings: Any) -> _engine.Simulation:
    simulation = make_simulation(replace(inputs, settings={**inputs.settings, **settings}), LAWS[law])
    while simulation.advance(10**8) == _engine.Outcome.RUNNING:
        pass
    return simulation


def numbers_of(bounded: _engine.Simulation) -> list[int]:
    """Return what a run has taken at mean rates, and a checksum of what it leaves unless that is the exact run."""
    counts = bounded.skip_counts()
    checksum = zlib.crc32(repr(sorted(results(bounded).items())).encode())
    return [*counts.values(), checksum if counts["spans"] else 0]


@pytest.mark.parametrize("law", ["none", "swift", "hybrid"])
def test_intervals_hold_the_exact_finishes(law: str, recorded: Record) -> None:
    """Of all transfers 95 % or more, the run's end within 1 %; the same bytes on each run; packets are conserved."""
    inputs = inputs_of(law)
    exact, bounded = finished(inputs, law), finished(inputs, law, **BOUNDED)
    truth, ours, counts = exact.transfer_columns(), bounded.transfer_columns(), bounded.skip_counts()
    is_inside_N = (ours["finish_low_ps"] <= truth["finish_ps"]) & (truth["finish_ps"] <= ours["finish_high_ps"])
    assert is_inside_N.mean() >= 0.95
    assert abs(bounded.now_ps - exact.now_ps) <= 0.01 * exact.now_ps
    assert results(bounded) == results(finished(inputs, law, **BOUNDED))
    assert counts["audited_counts_inside"] >= 0.95 * counts["audited_counts"] - 1
    sent = exact.packet_counts()["data_sent"]
    assert bounded.packet_counts()["data_sent"] == sent  # nothing is lost here
    assert np.array_equal(bounded.port_columns()["data_packets"], exact.port_columns()["data_packets"])
    if law == "swift":
        assert counts["packets"] > sent / 10
    recorded.hold(f"bounded, {law}", *numbers_of(bounded))


def test_audits_of_everything_change_nothing() -> None:
    """Where every span is simulated, the run is the exact one, and all of its intervals are empty."""
    inputs = inputs_of("swift")
    exact = results(finished(inputs, "swift"))
    audited = finished(inputs, "swift", **BOUNDED, audited_fraction=1.0)
    ours, counts = results(audited), audited.skip_counts()
    assert [name for name in exact if exact[name] != ours[name]] == []
    assert counts["audits"] > 5
    assert counts["spans"] == 0
    columns = audited.transfer_columns()
    assert np.array_equal(columns["finish_low_ps"], columns["finish_ps"])
    assert np.array_equal(columns["finish_high_ps"], columns["finish_ps"])
    assert counts["audited_counts_inside"] >= 0.9 * counts["audited_counts"]


def test_audits_find_a_bias() -> None:
    """Rates twice too high are outside what their windows allow: half-widths grow until hardly a span is taken."""
    inputs = inputs_of("swift")
    fair = finished(inputs, "swift", **BOUNDED)
    biased = finished(inputs, "swift", **BOUNDED, mean_rate_bias=1.0)
    assert fair.skip_counts()["spans"] > 10
    assert biased.skip_counts()["spans"] <= fair.skip_counts()["spans"] / 10
    assert biased.skip_counts()["audits"] > 5


@pytest.mark.parametrize("seed", range(20))
def test_random_runs_end_as_they_do(seed: int, recorded: Record) -> None:
    """With losses, timeouts, pauses and time limits: every run ends, and its intervals are in order."""
    run = random_run(seed)
    inputs = replace(run, probe=None).inputs()
    exact, bounded = finished(inputs, run.law), finished(inputs, run.law, **BOUNDED)
    columns = bounded.transfer_columns()
    if "on_timer" not in LAWS[run.law].handler_address:
        assert (columns["finish_low_ps"] <= columns["finish_ps"]).all()
        assert (columns["finish_ps"] <= columns["finish_high_ps"]).all()
    assert bounded.now_ps == pytest.approx(exact.now_ps, rel=0.02)
    if bounded.skip_counts()["spans"] == 0:
        truth, ours = results(exact), results(bounded)
        assert [name for name in truth if truth[name] != ours[name]] == []
    recorded.hold(f"bounded, plain {seed}", *numbers_of(bounded))


@pytest.mark.parametrize("limit_ns", [12_000_000, 13_500_000, 15_000_000])
@pytest.mark.parametrize("law", ["swift", "dctcp"])
def test_a_span_ends_before_the_time_limit(law: str, limit_ns: int, recorded: Record) -> None:
    """A limit amid spans: as many bytes as in the exact run, to a thousandth, where a span has hundreds of packets."""
    network, traffic = contended()
    config = PacketConfig(time_limit_ns=limit_ns)
    inputs = make_engine_inputs(network, traffic, LAWS[law], config, seed=3, probe=None, capture=None, faults=())
    exact, bounded = finished(inputs, law), finished(inputs, law, **{**BOUNDED, "skip_precision": 0.3})
    assert bounded.now_ps == exact.now_ps == limit_ns * 1_000
    assert bounded.acknowledged_bytes == pytest.approx(exact.acknowledged_bytes, rel=1e-3)
    assert bounded.skip_counts()["packets"] > exact.packet_counts()["data_sent"] / 20
    recorded.hold(f"bounded, {law} until {limit_ns} ns", *numbers_of(bounded))


@pytest.mark.parametrize("name", TRAINS)
def test_trains_end_as_they_do(name: str, recorded: Record) -> None:
    """With pauses, notifications, rare answers, copies between GPUs and time limits, of which spans take much."""
    train = TRAINS[name]
    inputs = train.inputs()
    exact = finished(inputs, train.law)
    bounded = finished(inputs, train.law, **{**BOUNDED, "skip_precision": 0.5, **train.settings})
    sent, ours = exact.packet_counts(), bounded.packet_counts()
    assert bounded.now_ps == pytest.approx(exact.now_ps, rel=0.02)
    assert ours["sent"] == ours["delivered"] + ours["dropped"] + ours["in_flight"]
    if train.config.time_limit_ns is None:
        assert ours["data_sent"] == sent["data_sent"]
        assert (bounded.transfer_columns()["finish_ps"] >= 0).all()
    assert bounded.skip_counts()["spans"] > 0
    recorded.hold(f"train: {name}", *numbers_of(bounded))


def test_the_record_has_no_queue_that_a_span_passed() -> None:
    """-1 in the table, nothing in the metric; and the terminal says what is an estimate."""
    network, traffic = contended()
    record = run_packets(network, traffic, LAWS["swift"], CONFIG, seed=3)
    exact = run_packets(network, traffic, LAWS["swift"], PacketConfig(skip="exact"), seed=3)
    passed_P = record.tables["ports"]["max_queue_bytes"] < 0
    assert passed_P.any()
    assert (record.tables["ports"]["data_packets"][passed_P] > 0).all()
    assert np.isnan(METRICS["queue.max"].measure(record))
    assert METRICS["queue.max"].measure(exact) > 0
    assert "finish_low_ps" in record.tables["transfers"]
    assert "finish_low_ps" not in exact.tables["transfers"]
    bounded = record.run["skip"]["bounded"]
    assert bounded["last_finish_low_ps"] < bounded["last_finish_ps"] < bounded["last_finish_high_ps"]
    assert any(line.startswith("taken at mean rates ") for line in skip_lines(record.run))
    assert any(line.startswith("last finish ") for line in skip_lines(record.run))


@pytest.mark.parametrize(
    ("law", "probe", "reason"),
    [
        ("swift", ProbeConfig(interval_ns=50_000, ports="all"), "probes sample what a span would not have"),
        ("dcqcn", None, "laws with timers recover for longer than windows can tell"),
    ],
)
def test_what_cannot_be_kept_is_simulated(law: str, probe: ProbeConfig | None, reason: str) -> None:
    """The tables are those of a run without skip, and the run says why."""
    network, traffic = contended()
    record = run_packets(network, traffic, LAWS[law], CONFIG, seed=3, probe=probe)
    exact = run_packets(network, traffic, LAWS[law], PacketConfig(), seed=3, probe=probe)
    assert skip_lines(record.run)[-1] == f"taken at mean rates 0 %: {reason}"
    for name, columns in exact.tables.items():
        for column, values in columns.items():
            assert np.array_equal(values, record.tables[name][column], equal_nan=values.dtype.kind == "f"), column
