"""The whole of `validate local`, small: real processes, real simulator, no claim about this machine's speed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.validate.local import LOOPBACK_CONFIG, validate_local
from fabrictune.validate.measuring import LocalSpec
from fabrictune.validate.summary import summarize
from foundation.errors import InputError
from foundation.records import RunRecord
from trainer_probe.config import ModelSpec, TrainingSpec

SPEC = LocalSpec(
    training=TrainingSpec(model=ModelSpec(width=64, depth=2), batch_size=8),
    bucket_bytes=(1, 2**30),
    num_steps=3,
    exchange_bytes=(8 * 2**10, 16 * 2**20),  # so far apart that no busy machine makes the larger the faster
)


@pytest.fixture(scope="module")
def record() -> RunRecord:
    pytest.importorskip("torch")
    return validate_local(SPEC)


def test_every_collective_is_measured_and_simulated(record: RunRecord) -> None:
    """Three steps of four requests (two weights, two biases) and three of one: 15, each with both times."""
    table = record.tables["comparison"]
    assert len(table["bytes"]) == 3 * 4 + 3
    assert sorted(set(table["bytes"].tolist())) == [64 * 8, 64 * 64 * 8, 2 * (64 * 64 + 64) * 8]
    assert (table["measured_ps"] > 0).all()
    assert (table["simulated_ps"] > 0).all()


def test_simulated_times_follow_from_the_calibration(record: RunRecord) -> None:
    """A ring of two takes two messages of half the buffer: 2 * (latency + S/2 / rate), to a packet's time each."""
    summary = summarize(record)
    table = record.tables["comparison"]
    expected = 2 * summary.latency_ps + table["bytes"] * 8 * 10**12 / summary.rate_bps
    packet_ps = LOOPBACK_CONFIG.mtu_bytes * 8 * 10**12 / summary.rate_bps
    np.testing.assert_allclose(table["simulated_ps"], expected, rtol=1e-3, atol=2 * packet_ps)


def test_what_is_predicted_was_not_calibrated(record: RunRecord) -> None:
    """A prediction of what was fitted would prove nothing: no message is as large as an exchange."""
    messages = set((record.tables["comparison"]["bytes"] // 2).tolist())
    assert not messages & set(record.tables["calibration"]["bytes"].tolist())


def test_the_summary_has_a_row_for_each_size_and_each_kind_of_step(record: RunRecord) -> None:
    """Three sizes of all-reduce; steps of four requests and of one, which move the same bytes."""
    rows = summarize(record).rows
    assert [(row.what, row.num_bytes, row.count) for row in rows] == [
        ("all_reduce", 512, 6),
        ("all_reduce", 32_768, 6),
        ("all_reduce", 66_560, 3),
        ("step of 4 requests", 66_560, 3),
        ("step of 1 requests", 66_560, 3),
    ]
    assert all(row.measured_low_ps <= row.measured_ps <= row.measured_high_ps for row in rows)
    assert all(row.ratio_low <= row.ratio <= row.ratio_high for row in rows)


def test_the_record_survives_its_files(record: RunRecord, tmp_path: Path) -> None:
    """Whatever reads records later reads this one: the summary is the same from the files."""
    assert summarize(RunRecord.read(record.write(tmp_path / "local"))) == summarize(record)


def test_sizes_that_are_to_be_predicted_may_not_be_calibrated() -> None:
    """A bucket of 64 weights of 64 is 32,768 B, sent in messages of 16,384 B, which the exchanges would have seen."""
    pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"exchange_bytes: \[16384\], of which the training sends messages"):
        validate_local(replace(SPEC, num_steps=1, exchange_bytes=(8192, 16384)))


def test_one_size_of_exchange_is_refused() -> None:
    """A latency and a rate cannot be told apart by one size."""
    with pytest.raises(InputError, match="a latency and a rate need two sizes to be told apart"):
        LocalSpec(exchange_bytes=(8192,))
