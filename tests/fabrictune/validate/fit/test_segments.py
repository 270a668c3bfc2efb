"""Cuts of a series where its times change their line."""

import numpy as np

from fabrictune.validate.fit.segments import Segment, find_segments
from tests.fabrictune.validate.fit.made_up import SIZES


def straight(seed: int, spread: float) -> list[float]:
    """Return times along one line of 20 us and 40 GB/s."""
    noise_E = np.random.default_rng(seed).normal(0, spread, len(SIZES))
    return [float(time) for time in (20e3 + np.array(SIZES) / 40) * np.exp(noise_E)]


def test_a_line_is_hardly_ever_cut() -> None:
    """Of 200 series with noise of 5 %, 2 % are expected to be: each cut costs coverage."""
    cut = sum(len(find_segments(SIZES, straight(seed, 0.05))) > 1 for seed in range(200))
    assert cut <= 8


def test_two_lines_are_cut_where_they_meet() -> None:
    times = [1e3 + size / 10 if size < 65536 else 50e3 + size / 40 for size in SIZES]
    first, second = find_segments(SIZES, times)
    assert SIZES[first.end] == 65536
    assert second.end == len(SIZES)


def test_an_outlier_does_not_cut() -> None:
    times = straight(1, 0.01)
    times[12] *= 1.5
    assert find_segments(SIZES, times) == [Segment(first=0, end=len(SIZES))]


def test_fewer_than_eight_sizes_are_one_segment() -> None:
    """Two lines through six points leave hardly an error by chance."""
    assert find_segments(SIZES[:7], [1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0]) == [Segment(first=0, end=7)]


def test_a_long_series_is_cut_at_64_places_at_most() -> None:
    """10,000 sizes are tried in the time of 64: the change is found within a step of them."""
    sizes = range(1, 10_001)
    first, _ = find_segments(sizes, [100.0 + size if size < 5000 else 9000.0 + 3 * size for size in sizes])
    assert abs(first.end - 5000) < 10_000 / 60
