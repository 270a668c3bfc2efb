"""Runs with `skip: fluid`: close to the packets, with bounds that hold them, and refused where shares know nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.transfers import estimator
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import QueuesConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.fluid import audits, run
from fabrictune.netsim.fluid.kernel import make_fluid
from fabrictune.netsim.memory import fluid_bytes, require_fluid_memory
from fabrictune.netsim.packet import run as run_packets
from fabrictune.netsim.skip import bounded_json, skip_lines
from fabrictune.topology.network import Network
from tests.fluid.test_shares import network_of
from tests.skip.runs import LAWS, make_trace

FLUID = PacketConfig(skip="fluid")
NUM_RANKS, NUM_STEPS = 8, 80


def step() -> tuple[Network, TrafficTrace]:
    """Return a ring over two ToRs, some of whose steps meet messages of another pair on the uplink."""
    source_Q = np.r_[np.arange(NUM_RANKS), 0, 5]
    network = network_of(source_Q, np.r_[np.roll(np.arange(NUM_RANKS), -1), 6, 1])
    waits = [[row - NUM_RANKS, row - NUM_RANKS - 1] if row > NUM_RANKS else [] for row in range(NUM_RANKS * NUM_STEPS)]
    ring = [(row % NUM_RANKS, 400_000, 0) for row in range(len(waits))]
    others = [(NUM_RANKS + row % 2, 2_500_000, row * 60_000_000) for row in range(12)]
    qp_N, bytes_N, start_ps_N = (np.array(column) for column in zip(*ring, *others, strict=True))
    return network, make_trace(qp_N, bytes_N, start_ps_N, [*waits, *([] for _ in others)])


def fluid_of(law: str = "none", config: PacketConfig = FLUID, seed: int = 3, **more: Any) -> RunRecord:
    network, traffic = step()
    return run_packets(network, traffic, LAWS[law], config, seed=seed, **more)


@pytest.fixture
def many_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay a third of the packets, since there are few."""
    monkeypatch.setattr(audits, "AUDITED_FRACTION", 0.3)


@pytest.mark.usefixtures("many_audits")
@pytest.mark.parametrize("law", ["none", "swift", "hybrid"])
def test_bounds_hold_the_packets(law: str) -> None:
    """The run's end within 2 %, 95 % of the transfers and of the audits inside their bounds; the same each time."""
    record = fluid_of(law)
    truth = fluid_of(law, PacketConfig(skip="exact"))
    ours, theirs = record.tables["transfers"], truth.tables["transfers"]
    assert record.run["end_ps"] == pytest.approx(truth.run["end_ps"], rel=0.02)
    assert is_inside(ours, theirs["finish_ps"]).mean() >= 0.95
    fluid = record.run["skip"]["fluid"]
    assert fluid["audited_counts"] >= 40
    assert fluid["audited_counts_inside"] >= 0.9 * fluid["audited_counts"]
    assert 0.1 < fluid["held_share"] < 0.9
    again = fluid_of(law).tables["transfers"]
    assert all(np.array_equal(ours[name], again[name], equal_nan=name == "slowdown") for name in ours)


def is_inside(ours: Any, finish_ps_N: IntArray) -> Any:
    return (ours["finish_low_ps"] <= finish_ps_N) & (finish_ps_N <= ours["finish_high_ps"])


def test_a_record_says_that_it_is_an_estimate() -> None:
    """With the share simulated, in its lines and figures; what only packets know is unknown."""
    record = fluid_of()
    fluid = record.run["skip"]["fluid"]
    assert record.run["outcome"] == "finished"
    assert 0.02 <= fluid["audited_share"] <= 0.1
    assert fluid["last_finish_low_ps"] <= fluid["last_finish_ps"] <= fluid["last_finish_high_ps"]
    assert sorted(record.tables) == ["fabric", "transfers"]
    assert estimator(record) == "fluid skip"
    assert bounded_json(record.run) == {"fluid_skip": fluid}
    assert skip_lines(record.run)[0].startswith(f"packet by packet {fluid['audited_share']:.2%}, the audits")
    assert skip_lines(record.run)[1].endswith("queues, marks and pauses are not known")
    assert np.isnan(METRICS["pauses"].measure(record))
    assert METRICS["makespan"].interval(record) is not None


def test_shares_that_are_off_have_wide_bounds(monkeypatch: pytest.MonkeyPatch, many_audits: None) -> None:
    """Where packets take twice as long as shares say, audits find it."""

    def twice_as_fast(inputs: Any) -> Any:
        faster = {**inputs.arrays, "port_rate_bps": 2 * inputs["port_rate_bps"]}
        return make_fluid(replace(inputs, arrays=faster))

    fair = fluid_of().run["skip"]["fluid"]
    monkeypatch.setattr(audits, "make_fluid", twice_as_fast)
    biased = fluid_of().run["skip"]["fluid"]
    width_ps, biased_ps = (found["last_finish_high_ps"] - found["last_finish_ps"] for found in (fair, biased))
    assert biased_ps > 3 * width_ps
    assert biased["last_finish_ps"] == fair["last_finish_ps"]


def test_a_time_limit_ends_a_run_early() -> None:
    """What is not done has no finish, and is found."""
    record = fluid_of(config=replace(FLUID, time_limit_ns=200_000))
    finish_ps_N = record.tables["transfers"]["finish_ps"]
    assert record.run["outcome"] == "time-limit"
    assert 0 < (finish_ps_N >= 0).sum() < len(finish_ps_N)
    assert finish_ps_N.max() <= 200_000_000
    assert (record.tables["transfers"]["finish_high_ps"][finish_ps_N < 0] == -1).all()
    assert [finding.id for finding in record.findings] == ["netsim.unfinished-transfers"]


def test_a_run_without_traffic_over_the_fabric_is_exact() -> None:
    """There is nothing to audit, and no doubt."""
    network, _ = step()
    record = run_packets(network, make_trace([], [], [], []), LAWS["none"], FLUID)
    assert record.run["outcome"] == "finished"
    assert record.run["skip"]["fluid"]["audited_transfers"] == 0
    assert record.run["end_ps"] == 0


def test_an_interrupted_run_has_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without audits, and so without bounds to speak of."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_to_the_end", stop)
    record = fluid_of()
    assert record.run["outcome"] == "interrupted"
    assert skip_lines(record.run) == ["at max-min shares, interrupted before any audit"]


def test_a_run_that_cannot_fit_is_refused() -> None:
    """Its estimate counts what each transfer takes, of the fluid and of the packets of a replay."""
    network, traffic = step()
    inputs = make_engine_inputs(network, traffic, LAWS["none"], FLUID, seed=0, probe=None)
    assert fluid_bytes(inputs) > 300 * len(traffic)
    require_fluid_memory(inputs, fluid_bytes(inputs))
    with pytest.raises(InputError, match="a run that may need"):
        require_fluid_memory(inputs, fluid_bytes(inputs) - 1)


@pytest.mark.parametrize(
    ("config", "beside", "found"),
    [
        (FLUID, {"probe": ProbeConfig(interval_ns=1000)}, "probe"),
        (FLUID, {"capture": CaptureConfig(flows=(0,))}, "capture"),
        (replace(FLUID, path_choice=PathChoiceConfig(mode="spray")), {}, "engine.path_choice"),
        (replace(FLUID, pfc=PfcConfig(enabled=False)), {}, "engine.pfc.enabled: false"),
        (replace(FLUID, loss_fraction=0.1), {}, "engine.loss"),
        (replace(FLUID, host=HostConfig(pcie_generation=5)), {}, "engine.host"),
        (replace(FLUID, transport=TransportConfig(reliability="selective-repeat")), {}, "selective-repeat"),
        (replace(FLUID, queues=QueuesConfig(acknowledgement_class="data")), {}, "acknowledgement_class: data"),
    ],
)
def test_what_shares_do_not_know_is_refused(config: PacketConfig, beside: dict[str, Any], found: str) -> None:
    """By its name, before anything runs."""
    with pytest.raises(InputError, match=found):
        fluid_of(config=config, **beside)
