"""Measurements by classes of size."""

import pytest

from fabrictune.collectives.measurement.measurements import Measurement
from fabrictune.collectives.measurement.size_classes import size_class, size_classes


def row(size_bytes: int, mean_ns: float, *, is_in_place: bool = False) -> Measurement:
    return Measurement(name="send_recv", is_in_place=is_in_place, size_bytes=size_bytes, num_ranks=2, mean_ns=mean_ns)


def test_a_class_is_four_powers_of_two_wide() -> None:
    """1 to 15 B, 16 to 255 B, ..., 1 to 16 GiB short of its end."""
    assert [size_class(size) for size in (1, 15, 16, 255, 256, 2**32, 2**36 - 1, 2**36)] == [0, 0, 1, 1, 2, 8, 8, 9]


def test_a_class_has_its_largest_its_best_and_its_median() -> None:
    """32, 64 and 128 B in 8, 8 and 64 ns: 32, 64 and 16 Gbps; places are apart."""
    rows = [row(128, 64.0), row(32, 8.0), row(64, 8.0), row(64, 4.0, is_in_place=True), row(2**20, 10.0)]
    first, second, in_place = size_classes(rows)
    assert [one.size_bytes for one in first.rows] == [32, 64, 128]
    assert (first.largest.size_bytes, first.best.size_bytes) == (128, 64)
    assert first.median_busbw_bps == pytest.approx(32e9)
    assert second.largest.size_bytes == 2**20
    assert in_place.rows[0].is_in_place
