"""Normal numbers by their place: the same bits as one at a time, and a normal distribution."""

import numpy as np
import pytest

from fabrictune.trainer_probe.model.normals import (
    KNOTS_PER_OCTAVE,
    OCTAVES,
    exact_knots,
    quantile_knots,
    random_bits,
    standard_normals,
    to_normals,
)
from tests.trainer_probe.model.slow_normals import normal_of, philox, slow_normals

KEY = 0x0123456789ABCDEF_FEDCBA9876543210


def test_philox_is_that_of_its_authors() -> None:
    """The first known answer of Random123 for philox4x64 of 10 rounds."""
    words = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert list(philox(0, 0)) == words


def test_numbers_in_bulk_are_those_one_by_one() -> None:
    """To the bit, signs of zeros included."""
    one_by_one = np.fromiter(slow_normals(KEY, 4096), np.float32)
    assert standard_normals(KEY, 0, 4096).tobytes() == one_by_one.tobytes()


def test_every_address_is_that_of_its_probability() -> None:
    """Bits at both ends of the range, of each octave, and of each knot, and the greatest, which round to one half."""
    edges = [2**octave + number * 2**octave // 128 for octave in range(31) for number in range(128)]
    bits = sorted({*edges, *(edge - 1 for edge in edges), 0, 2**31 - 1, 2**31, 2**32 - 1, 2**31 - 64, 2**31 - 65})
    one_by_one = np.array([normal_of(word) for word in bits], np.float32)
    assert to_normals(np.array(bits, np.uint32)).tobytes() == one_by_one.tobytes()


@pytest.mark.parametrize(("first", "count"), [(0, 1), (1, 7), (7, 2), (8, 8), (13, 100), (4095, 1)])
def test_a_part_of_a_stream_is_drawn_alone(first: int, count: int) -> None:
    """Within a block of eight numbers, over its end, and from one end to the other."""
    whole = standard_normals(KEY, 0, 4096)
    assert standard_normals(KEY, first, count).tobytes() == whole[first : first + count].tobytes()


def test_far_places_are_reached_at_once() -> None:
    """A weight may have more elements than 32 bits count."""
    first = 2**40 + 3
    word = philox(first // 8 + 1, KEY)[first % 8 // 2]
    assert random_bits(KEY, [(first, 1)])[0] == word >> 32 * (first % 2) & 0xFFFFFFFF


def test_ranges_in_any_order_are_those_of_the_stream() -> None:
    """On, back, over one another, and in the middle of a block."""
    runs = [(13, 5), (4000, 9), (0, 8), (15, 20), (35, 1)]
    alone = [random_bits(KEY, [run]) for run in runs]
    assert random_bits(KEY, runs).tolist() == np.concatenate(alone).tolist()


def test_no_knot_is_near_a_tie() -> None:
    """The logarithm of any machine is right to a few units in the last place; a knot rounds otherwise past 10,000."""
    exact_K, knot_K = np.array(exact_knots()[:-1]), quantile_knots()[0][:-1]
    for way in (np.inf, -np.inf):
        neighbour_K = np.nextafter(knot_K, np.float32(way)).astype(np.float64)
        tie_K = (neighbour_K + knot_K.astype(np.float64)) / 2
        assert (np.abs(exact_K - tie_K) / np.spacing(exact_K)).min() > 10_000


def test_the_numbers_are_normal_in_mean_variance_and_kurtosis() -> None:
    """Of the whole distribution, by integrals over its segments: 0 by symmetry, 1 and 3 to a few millionths."""
    start_K, stop_K = (knots.astype(np.float64) for knots in (quantile_knots()[0][:-1], quantile_knots()[0][1:]))
    octave_K = np.arange(OCTAVES * KNOTS_PER_OCTAVE) // KNOTS_PER_OCTAVE
    mass_K = 2 * 2.0 ** (octave_K - 32) / KNOTS_PER_OCTAVE
    moments = {
        power: (mass_K * sum(start_K**part * stop_K ** (power - part) for part in range(power + 1))).sum() / (power + 1)
        for power in (2, 4)
    }
    assert mass_K.sum() == pytest.approx(1, abs=1e-9)
    assert moments[2] == pytest.approx(1, abs=1e-5)
    assert moments[4] == pytest.approx(3, abs=1e-4)


def test_each_bit_of_a_key_and_of_a_place_matters() -> None:
    """A quarter of a million numbers: mean, deviation, and correlation with neighbours and with another key."""
    one, other = standard_normals(KEY, 0, 2**18), standard_normals(KEY ^ 1, 0, 2**18)
    limit = 4 / 2**9  # four standard errors
    assert abs(one.mean()) < limit
    assert abs(one.std() - 1) < limit
    for a, b in ((one, other), *((one[lag:], one[:-lag]) for lag in (1, 2, 4, 8, 64))):
        assert abs(np.mean(a * b)) < limit
