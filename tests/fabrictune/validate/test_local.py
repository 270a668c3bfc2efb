"""The whole of `validate local`, small: real processes and the real simulator.

How fast this machine is, and how busy, must not decide a test: the exchanges are really made, and then given times that
lie on a known line.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.spec import num_parameters
from fabrictune.validate.local import LOOPBACK_CONFIG, predict_local
from fabrictune.validate.local_measurement import LocalMeasurement, LocalSpec, measure_local
from fabrictune.validate.summary import summarize_validation

SPEC = LocalSpec(
    models=tuple(GptSpec(width=width, depth=2, num_heads=2, vocabulary=64, sequence=8) for width in (8, 64)),
    num_steps=3,
    exchange_bytes=(8_000, 1_000_000),
    exchanges_per_step=2,
)
LATENCY_PS = 100_000_000
RATE_BPS = 8_000_000_000


@pytest.fixture(scope="module")
def measurement() -> LocalMeasurement:
    pytest.importorskip("torch")
    return measure_local(SPEC)


@pytest.fixture(scope="module")
def record(measurement: LocalMeasurement) -> RunRecord:
    return predict_local(on_the_line(measurement))


def on_the_line(measurement: LocalMeasurement) -> LocalMeasurement:
    """Return the measurement with exchanges of 100 us and 8 Gbps, 1,000 ps a byte."""
    times_E = LATENCY_PS + 1_000 * measurement.exchange_bytes_E
    return replace(measurement, exchange_ps_EK=np.tile(times_E[:, None], measurement.exchange_ps_EK.shape[1]))


def test_exchanges_of_every_size_follow_every_step(measurement: LocalMeasurement) -> None:
    """Two models, three steps, two exchanges after each: 12 of each size."""
    assert measurement.exchange_bytes_E.tolist() == [8_000, 1_000_000]
    assert measurement.exchange_ps_EK.shape == (2, 12)
    assert (measurement.exchange_ps_EK > 0).all()


def test_every_collective_is_measured_and_simulated(record: RunRecord) -> None:
    """A gathering and a scattering of all weights in each of three steps of two models: 12, each with both times."""
    table = record.tables["comparison"]
    assert len(table["bytes"]) == 2 * 3 * 2
    assert set(table["operation"].tolist()) == {"all_gather", "reduce_scatter"}
    assert sorted(set(table["bytes"].tolist())) == [8 * num_parameters(model) for model in SPEC.models]
    assert (table["measured_ps"] > 0).all()
    assert record.run["outcome"] == "finished"


def test_simulated_times_follow_from_the_calibration(record: RunRecord) -> None:
    """A ring of two takes one message of half the buffer: latency + S/2 / rate, to a packet's time."""
    assert record.run["calibration"]["latency_ps"] == LATENCY_PS
    assert record.run["calibration"]["rate_bps"] == RATE_BPS
    table = record.tables["comparison"]
    expected = LATENCY_PS + table["bytes"] / 2 * 8 * 10**12 / RATE_BPS
    packet_ps = LOOPBACK_CONFIG.mtu_bytes * 8 * 10**12 / RATE_BPS
    np.testing.assert_allclose(table["simulated_ps"], expected, rtol=1e-3, atol=packet_ps)


def test_the_summary_has_a_row_for_each_size_and_each_kind_of_step(record: RunRecord) -> None:
    """22,400 and 867,328 bytes of weights, gathered and scattered, and both together a step."""
    rows = summarize_validation(record).rows
    assert [(row.what, row.num_bytes, row.count) for row in rows] == [
        ("all_gather", 22_400, 3),
        ("all_gather", 867_328, 3),
        ("reduce_scatter", 22_400, 3),
        ("reduce_scatter", 867_328, 3),
        ("step", 44_800, 3),
        ("step", 1_734_656, 3),
    ]
    assert all(row.measured_low_ps <= row.measured_ps <= row.measured_high_ps for row in rows)
    assert all(row.ratio_low <= row.ratio <= row.ratio_high for row in rows)


def test_the_record_survives_its_files(record: RunRecord, tmp_path: Path) -> None:
    """Whatever reads records later reads this one: the summary is the same from the files."""
    assert summarize_validation(RunRecord.read(record.write(tmp_path / "local"))) == summarize_validation(record)


def test_a_busy_machine_is_told(measurement: LocalMeasurement) -> None:
    """Every other exchange thrice as long: the quartiles lie a factor of three apart, the line goes through between."""
    calm = on_the_line(measurement)
    disturbed = calm.exchange_ps_EK.copy()
    disturbed[:, ::2] *= 3
    assert "validate.busy-machine" not in {finding.id for finding in predict_local(calm).findings}
    findings = [
        finding
        for finding in predict_local(replace(calm, exchange_ps_EK=disturbed)).findings
        if finding.id == "validate.busy-machine"
    ]
    assert [finding.actual for finding in findings] == ["quartiles of 108 us and 324 us"]


def test_a_prediction_that_misses_is_told(measurement: LocalMeasurement) -> None:
    """A loopback a thousand times too slow predicts a thousand times too long, for every row."""
    slow = on_the_line(measurement)
    slow = replace(slow, exchange_ps_EK=slow.exchange_ps_EK + 1_000_000 * slow.exchange_bytes_E[:, None])
    record = predict_local(slow)
    missed = [finding for finding in record.findings if finding.id == "validate.prediction-off"]
    assert "all_gather of 867.3 KB" in {finding.entity for finding in missed}


def test_sizes_that_are_to_be_predicted_may_not_be_calibrated(measurement: LocalMeasurement) -> None:
    """Weights of 22,400 B are sent in messages of 11,200 B, which the exchanges would have seen."""
    seen = replace(on_the_line(measurement), exchange_bytes_E=np.array([8_000, 11_200]))
    with pytest.raises(InputError, match=r"exchange_bytes: \[11200\], of which the training sends messages"):
        predict_local(seen)


def test_one_size_of_exchange_is_refused() -> None:
    """One size cannot separate a latency from a rate."""
    with pytest.raises(InputError, match="separating a latency from a rate needs two sizes"):
        LocalSpec(exchange_bytes=(8192,))
