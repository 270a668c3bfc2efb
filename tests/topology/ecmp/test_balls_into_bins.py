"""Closed forms of random hashing against counting all outcomes, and against published values."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.topology.ecmp.balls_into_bins import NEGLIGIBLE, UniformHashing

REFERENCE = (  # flows, links, capacity; no overload, max load, flows on overloaded links, throughput, slowest
    (64, 64, 1, 3.22e-27, 3.958, 0.6292, 0.6350, 0.2620),
    (64, 32, 2, 1.383e-17, 5.415, 0.5897, 0.7336, 0.3803),
    (32, 32, 2, 0.02927, 3.533, 0.2525, 0.9022, 0.5904),
    (32, 64, 1, 7.682e-05, 2.722, 0.3863, 0.7917, 0.3886),
    (16, 32, 2, 0.6413, 2.392, 0.0783, 0.9720, 0.8733),
    (16, 64, 1, 0.129, 1.991, 0.2104, 0.8909, 0.5450),
    (8, 8, 1, 0.002403, 2.597, 0.6073, 0.6564, 0.4100),
    (32, 32, 1, 1.8e-13, 3.533, 0.6263, 0.6379, 0.2952),
    (128, 60, 2, 0, 6.161, 0.6270, 0.7101, 0.3323),
    (512, 32, 16, 4.412e-31, 24.824, 0.5317, 0.9023, 0.6492),
    (128, 32, 4, 5.757e-22, 8.651, 0.5634, 0.8077, 0.4712),
)


@pytest.mark.parametrize(("flows", "links", "capacity"), [(1, 1, 1), (3, 2, 1), (5, 3, 2), (4, 4, 1.5), (6, 1, 2)])
def test_everything_equals_counting_all_outcomes(flows: int, links: int, capacity: float) -> None:
    """Every way in which the flows can fall is equally likely: at most 243 of them here."""
    one = UniformHashing(num_flows=flows, num_links=links, capacity_flows=capacity)
    loads = np.array([np.bincount(way, minlength=links) for way in itertools.product(range(links), repeat=flows)])
    most = loads.max(axis=1)
    assert one.no_overload_probability == pytest.approx((most <= capacity).mean())
    assert one.max_load_probability == pytest.approx(np.bincount(most, minlength=flows + 1) / len(loads))
    assert one.expected_max_load == pytest.approx(most.mean())
    assert one.slowest_fraction == pytest.approx(np.minimum(1, capacity / most).mean())
    assert one.expected_used_links == pytest.approx((loads > 0).sum(axis=1).mean())
    assert one.alone_probability == pytest.approx((loads == 1).sum(axis=1).mean() / flows)
    assert one.crowded_fraction == pytest.approx(np.where(loads > capacity, loads, 0).sum(axis=1).mean() / flows)
    assert one.throughput_fraction == pytest.approx(np.minimum(loads, capacity).sum(axis=1).mean() / flows)
    assert one.max_load_quantile(0.99) == np.quantile(most, 0.99, method="inverted_cdf")  # noqa: TID251, an independent oracle


@given(flows=st.integers(1, 40), links=st.integers(1, 12), most=st.integers(0, 41))
def test_the_chance_of_a_bound_equals_whole_number_arithmetic(flows: int, links: int, most: int) -> None:
    """N! times a coefficient of (1 + x + ... + x^k / k!)^M counts the ways; in fractions nothing is rounded."""
    series = [Fraction(1, math.factorial(count)) for count in range(most + 1)]
    power = [Fraction(1)]
    for _ in range(links):
        power = [
            sum((power[i] * series[n - i] for i in range(len(power)) if 0 <= n - i <= most), Fraction())
            for n in range(min(flows, len(power) + most - 1) + 1)
        ]
    ways = math.factorial(flows) * (power[flows] if flows < len(power) else 0)
    found = UniformHashing(num_flows=flows, num_links=links).at_most_probability(most)
    assert found == pytest.approx(float(ways / Fraction(links) ** flows), rel=1e-9, abs=0)


@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: f"{row[0]}-on-{row[1]}-of-{row[2]}")
def test_values_equal_an_independent_derivation(row: tuple[float, ...]) -> None:
    """To the digits that were printed; among them MegaScale's 64 NICs on 64 links, and split on 32 double ones."""
    flows, links, capacity, no_overload, max_load, crowded, throughput, slowest = row
    one = UniformHashing(num_flows=int(flows), num_links=int(links), capacity_flows=capacity)
    assert one.no_overload_probability == pytest.approx(no_overload, rel=2e-3)
    assert one.expected_max_load == pytest.approx(max_load, abs=6e-4)
    assert one.crowded_fraction == pytest.approx(crowded, abs=6e-5)
    assert one.throughput_fraction == pytest.approx(throughput, abs=6e-5)
    assert one.slowest_fraction == pytest.approx(slowest, abs=6e-5)


@pytest.mark.parametrize(("flows", "links"), [(2, 8), (8, 8), (8, 16), (16, 64), (23, 365)])
def test_capacity_one_is_the_birthday_problem(flows: int, links: int) -> None:
    """M! / ((M - N)! M^N); 23 people share no birthday with a chance of 0.4927."""
    expected = math.perm(links, flows) / links**flows
    assert UniformHashing(num_flows=flows, num_links=links).no_overload_probability == pytest.approx(expected)


def test_chances_add_up_where_they_are_tiny() -> None:
    """512 flows on 32 links: the power of a series keeps relative precision."""
    one = UniformHashing(num_flows=512, num_links=32, capacity_flows=16)
    assert one.max_load_probability.sum() == pytest.approx(1.0)
    assert one.load_probability.sum() == pytest.approx(1.0)
    assert one.no_overload_probability == pytest.approx(math.factorial(512) / (math.factorial(16) * 32**16) ** 32)


def test_nonsense_is_refused_all_at_once() -> None:
    """Every setting that is out of range is named."""
    with pytest.raises(InputError) as raised:
        UniformHashing(num_flows=0, num_links=0, capacity_flows=0)
    assert str(raised.value) == (
        "num_flows: 0\n  allowed: 1 to 4096\n"
        "num_links: 0\n  allowed: 1 or more\n"
        "capacity_flows: 0\n  allowed: above zero"
    )


def test_what_is_certain_has_the_chance_of_one() -> None:
    """All flows on one link, and more than all; nothing is left to rounding."""
    for flows, links in itertools.product((1, 2, 7, 16, 100), (1, 3, 64)):
        one = UniformHashing(num_flows=flows, num_links=links)
        assert [one.at_most_probability(most) for most in (flows, flows + 1)] == [1.0, 1.0]


def test_chances_are_asked_for_until_one_is_certain() -> None:
    """That at three flows is short of one by no more than rounding, and counts as no certainty yet; four are enough."""
    asked: list[int] = []

    class Certain(UniformHashing):
        def at_most_probability(self, most: int) -> float:
            asked.append(most)
            return (0.0, 0.25, 0.5, 1 - NEGLIGIBLE, 1.0, 1.0)[most]

    assert Certain(num_flows=6, num_links=6).max_load_probability[:3].tolist() == [0.0, 0.25, 0.25]
    assert asked == [1, 2, 3, 4]


def test_a_quantile_that_is_met_exactly_is_not_exceeded() -> None:
    """Two flows on two links fall apart half of the time, and 0.5 less a rounding error is enough."""
    one = UniformHashing(num_flows=2, num_links=2)
    assert [one.max_load_quantile(probability) for probability in (0.49, 0.5, 0.51)] == [1, 1, 2]


def test_up_to_4096_flows_are_computed() -> None:
    """On one link by default, which carries one of them."""
    assert UniformHashing(num_flows=4096, num_links=1).throughput_fraction == pytest.approx(1 / 4096)
    with pytest.raises(InputError, match=r"num_flows: 4097\n  allowed: 1 to 4096"):
        UniformHashing(num_flows=4097, num_links=1)


def test_no_chance_exceeds_one() -> None:
    """Rounding would: 16 flows on 16 links have no more than 14 on any with a chance of 1 - 1e-16."""
    for flows, links in ((16, 16), (16, 32), (16, 64)):
        one = UniformHashing(num_flows=flows, num_links=links)
        assert max(one.at_most_probability(most) for most in range(1, flows)) == pytest.approx(1.0)
        assert max(one.at_most_probability(most) for most in range(1, flows)) <= 1.0
