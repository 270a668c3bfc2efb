"""The whole of `validate local`, small: real processes and the real simulator.

How fast this machine is, and how busy, must not decide a test: the probes are really made, and then given times that
lie on known lines.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError, UnavailableError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.spec import num_parameters
from fabrictune.validate.local import LOOPBACK_CONFIG, predict_local
from fabrictune.validate.local_measurement import LocalMeasurement, LocalSpec, measure_local
from fabrictune.validate.machine_share import MachineShare
from fabrictune.validate.summary import summarize_validation

SPEC = LocalSpec(
    models=tuple(GptSpec(width=width, depth=2, num_heads=2, vocabulary=64, sequence=8) for width in (8, 64)),
    num_steps=3,
    exchange_bytes=(64, 8_000, 1_000_000),
    rounds_per_step=2,
)
US = 1_000_000  # picoseconds
PS_OF_BYTE = {"exchange": 1_000, "copy": 200, "sum": 300, "fresh_copy": 700}
CALL_PS = {"all_gather": 150 * US, "reduce_scatter": 120 * US}
LATENCY_PS = 100 * US
CALM = MachineShare(num_processors=2, others_fraction=0.05, steal_fraction=0.0, load_average=0.5)


@pytest.fixture(scope="module")
def measurement() -> LocalMeasurement:
    pytest.importorskip("torch")
    return measure_local(SPEC)


@pytest.fixture(scope="module")
def record(measurement: LocalMeasurement) -> RunRecord:
    return predict_local(on_the_line(measurement))


def on_the_line(measurement: LocalMeasurement) -> LocalMeasurement:
    """Return the measurement with probes of known times, on a calm machine, without page faults.

    An exchange takes 100 us and 1,000 ps a byte (8 Gbps), from 64 B on; others what a byte of theirs costs.
    """
    rows = zip(measurement.probe_P, measurement.bytes_P.tolist(), strict=True)
    times_P = [
        CALL_PS.get(probe) or PS_OF_BYTE[probe] * size + LATENCY_PS * (probe == "exchange") for probe, size in rows
    ]
    return replace(
        measurement,
        probe_ps_PK=np.tile(np.array(times_P)[:, None], measurement.probe_ps_PK.shape[1]),
        page_faults_N=np.where(measurement.page_faults_N == UNKNOWN, UNKNOWN, 0),
        machine=CALM,
    )


def test_rounds_of_probes_follow_every_step(measurement: LocalMeasurement) -> None:
    """Two models, two ways of waiting, three steps, two rounds after each: 24; three probes a size, four besides."""
    assert measurement.probe_ps_PK.shape == (3 * 3 + 4, 24)
    assert measurement.step_K.tolist() == [step for step in range(12) for _ in range(2)]
    assert (measurement.probe_ps_PK > 0).all()


def test_collectives_of_every_other_step_are_waited_for_at_once(measurement: LocalMeasurement) -> None:
    """Their page faults are theirs alone, and only they are counted."""
    assert np.array_equal(measurement.is_overlapped_N, measurement.trace.step_N % 2 == 1)
    assert np.array_equal(measurement.page_faults_N == UNKNOWN, measurement.is_overlapped_N)


def test_every_collective_and_every_step_is_measured_and_simulated(record: RunRecord) -> None:
    """A gathering and a scattering in each of three steps of two models that wait at once, and all twelve steps."""
    table = record.tables["comparison"]
    kinds, counts = np.unique(table["operation"], return_counts=True)
    assert dict(zip(kinds.tolist(), counts.tolist(), strict=True)) == {
        "all_gather": 6,
        "reduce_scatter": 6,
        "step": 6,
        "overlapped step": 6,
    }
    is_collective = np.isin(table["operation"], ["all_gather", "reduce_scatter"])
    assert sorted(set(table["bytes"][is_collective].tolist())) == [8 * num_parameters(model) for model in SPEC.models]
    assert (table["measured_ps"] > 0).all()
    assert record.run["outcome"] == "finished"


def test_simulated_times_follow_from_the_calibration(record: RunRecord) -> None:
    """The call, the exchange of S/2 beyond 64 B, and copies of S/2 and S, or a copy of S/2 and the sum of S."""
    assert record.run["calibration"]["latency_ps"] == LATENCY_PS + 64 * 1_000
    assert record.run["calibration"]["rate_bps"] == pytest.approx(8e9)
    table = record.tables["comparison"]
    size = table["bytes"]
    exchange_ps = 1_000 * (size / 2 - 64)
    gather_ps = CALL_PS["all_gather"] + exchange_ps + 200 * (size / 2 - 64) + 200 * (size - 64)
    scatter_ps = CALL_PS["reduce_scatter"] + exchange_ps + 200 * (size / 2 - 64) + 300 * (size - 128)
    packet_ps = LOOPBACK_CONFIG.mtu_bytes * 8 * 10**12 / 8e9
    for operation, expected_ps in (("all_gather", gather_ps), ("reduce_scatter", scatter_ps)):
        chosen = table["operation"] == operation
        np.testing.assert_allclose(table["simulated_ps"][chosen], expected_ps[chosen], rtol=2e-3, atol=packet_ps)


def test_parts_add_up_to_the_simulated_time(record: RunRecord) -> None:
    """No part of a collective is hidden."""
    table = record.tables["comparison"]
    chosen = np.isin(table["operation"], ["all_gather", "reduce_scatter"])
    names = ("call_ps", "exchange_ps", "copy_ps", "sum_ps", "page_ps")
    parts_ps = sum(table[name][chosen] for name in names)
    packet_ps = LOOPBACK_CONFIG.mtu_bytes * 8 * 10**12 / 8e9
    np.testing.assert_allclose(table["simulated_ps"][chosen], parts_ps, rtol=2e-3, atol=packet_ps)


def test_a_page_fault_costs_what_a_copy_into_new_memory_costs_more(measurement: LocalMeasurement) -> None:
    """500 ps a byte more, 2.048 us a page of 4,096 B: 100 faults make each collective 204.8 us longer."""
    calm = replace(on_the_line(measurement), page_bytes=4_096)
    faulty = replace(calm, page_faults_N=np.where(calm.is_overlapped_N, UNKNOWN, 100))
    with_faults, without = (predict_local(given).tables["comparison"] for given in (faulty, calm))
    longer_ps = with_faults["simulated_ps"] - without["simulated_ps"]
    chosen = np.isin(without["operation"], ["all_gather", "reduce_scatter"])
    np.testing.assert_allclose(longer_ps[chosen], 204.8 * US, rtol=1e-3)
    assert (longer_ps[~chosen] > 0).all(), "and each step by what it waits for them"


def test_a_step_is_its_work_and_its_collectives(record: RunRecord) -> None:
    """Waiting at once, a simulated step is longer than its two collectives by work that was measured."""
    table = record.tables["comparison"]
    for step in range(0, 12, 2):
        own = table["step"] == step
        whole_ps = table["simulated_ps"][own & (table["operation"] == "step")]
        parts_ps = table["simulated_ps"][own & (table["operation"] != "step")].sum()
        assert whole_ps > parts_ps


def test_the_summary_has_a_row_for_each_size_and_each_kind_of_step(record: RunRecord) -> None:
    """22,400 and 867,328 bytes of weights, gathered and scattered, and both together a step of either kind."""
    rows = summarize_validation(record).rows
    assert [(row.what, row.num_bytes, row.count) for row in rows] == [
        ("all_gather", 22_400, 3),
        ("all_gather", 867_328, 3),
        ("reduce_scatter", 22_400, 3),
        ("reduce_scatter", 867_328, 3),
        ("overlapped step", 44_800, 3),
        ("overlapped step", 1_734_656, 3),
        ("step", 44_800, 3),
        ("step", 1_734_656, 3),
    ]
    assert all(row.measured_low_ps <= row.measured_ps <= row.measured_high_ps for row in rows)
    assert all(row.simulated_low_ps <= row.simulated_ps <= row.simulated_high_ps for row in rows)
    assert all(row.ratio_low <= row.ratio <= row.ratio_high for row in rows)
    assert all(row.unexplained_ps == row.measured_ps - row.simulated_ps for row in rows)


def test_the_record_survives_its_files(record: RunRecord, tmp_path: Path) -> None:
    """Whatever reads records later reads this one: the summary is the same from the files."""
    assert summarize_validation(RunRecord.read(record.write(tmp_path / "local"))) == summarize_validation(record)


def test_probes_that_vary_are_told(measurement: LocalMeasurement) -> None:
    """Every other round thrice as long: the quartiles lie a factor of three apart."""
    calm = on_the_line(measurement)
    disturbed = calm.probe_ps_PK.copy()
    disturbed[:, ::2] *= 3
    assert "validate.busy-machine" not in {finding.id for finding in predict_local(calm).findings}
    findings = [
        finding
        for finding in predict_local(replace(calm, probe_ps_PK=disturbed)).findings
        if finding.id == "validate.busy-machine"
    ]
    assert len(findings) == 1
    assert findings[0].expected == "quartiles within a factor of 2"


def test_others_on_the_processors_are_told_and_widen_the_intervals(measurement: LocalMeasurement) -> None:
    """Every fourth round thrice as long: of medians the interval is narrow, of single collectives it has both."""
    calm = on_the_line(measurement)
    disturbed = calm.probe_ps_PK.copy()
    disturbed[:, ::4] *= 3
    crowd = replace(CALM, others_fraction=0.5, load_average=9.0)
    quiet, busy = (predict_local(replace(calm, probe_ps_PK=disturbed, machine=machine)) for machine in (CALM, crowd))
    told = [finding for finding in busy.findings if finding.id == "validate.busy-machine"]
    assert [(finding.entity, finding.actual) for finding in told] == [
        ("machine", "others took 50%, and the hypervisor 0%")
    ]
    assert (quiet.run["intervals_of"], busy.run["intervals_of"]) == ("medians", "single collectives")
    widths = [
        [row.simulated_high_ps / row.simulated_low_ps for row in summarize_validation(run).rows]
        for run in (quiet, busy)
    ]
    assert all(wide > narrow for narrow, wide in zip(*widths, strict=True))


def test_a_prediction_that_misses_is_told(measurement: LocalMeasurement) -> None:
    """A loopback a thousand times too slow predicts a thousand times too long, for every row."""
    slow = on_the_line(measurement)
    slow = replace(slow, probe_ps_PK=slow.probe_ps_PK * 1_000)
    with pytest.raises(UnavailableError, match="no latency and rate fit these exchanges"):
        predict_local(slow)
    slow = on_the_line(measurement)
    is_exchange_P = np.array(slow.probe_P) == "exchange"
    longer_P = np.where(is_exchange_P, 1_000_000 * slow.bytes_P, 0)
    record = predict_local(replace(slow, probe_ps_PK=slow.probe_ps_PK + longer_P[:, None]))
    missed = [finding for finding in record.findings if finding.id == "validate.prediction-off"]
    assert "all_gather of 867.3 KB" in {finding.entity for finding in missed}
    rows = {(row.what, row.num_bytes): row.verdict for row in summarize_validation(record).rows}
    assert rows["all_gather", 867_328] == "off"


def test_sizes_that_are_to_be_predicted_may_not_be_calibrated(measurement: LocalMeasurement) -> None:
    """Weights of 22,400 B are sent in messages of 11,200 B, which the exchanges would have seen."""
    calm = on_the_line(measurement)
    is_seen_P = (np.array(calm.probe_P) == "exchange") & (calm.bytes_P == 8_000)
    with pytest.raises(InputError, match=r"exchange_bytes: \[11200\], of which the training sends messages"):
        predict_local(replace(calm, bytes_P=np.where(is_seen_P, 11_200, calm.bytes_P)))


def test_one_size_of_exchange_is_refused() -> None:
    """One size cannot separate a latency from a rate."""
    with pytest.raises(InputError, match="separating a latency from a rate needs two sizes"):
        LocalSpec(exchange_bytes=(8192,))
