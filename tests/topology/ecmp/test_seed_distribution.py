"""Unknown seeds: exact answers where there are any, and intervals that hold the truth where there are none."""

import numpy as np
import pytest

from fabrictune.topology.ecmp.balls_into_bins import UniformHashing
from fabrictune.topology.ecmp.estimates import Estimate
from fabrictune.topology.ecmp.seed_distribution import SeedDistribution, distribute_over_seeds
from fabrictune.topology.ecmp.seed_study import measure_seeds
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.queue_pairs import make_queue_pairs

NAMES = ("overload_probability", "worst_load_fraction", "throughput_fraction", "slowest_fraction")


def across(num_flows: int) -> QueuePairs:
    """Return queue pairs that climb from the first ToR to the second, one a NIC at most."""
    return make_queue_pairs(np.arange(num_flows), 8 + np.arange(num_flows))


def test_one_choice_is_answered_exactly(two_tors: Fabric) -> None:
    """8 flows on 8 uplinks: no overload with 8! / 8^8, 2.597 flows on the worst, 65.64 % get through."""
    exact = distribute_over_seeds(two_tors, across(8), HashSpec(), num_seeds=2)
    assert exact.is_exact
    assert exact.overload_probability.value == pytest.approx(1 - 0.002403, abs=1e-6)
    assert exact.worst_load_fraction.value == pytest.approx(2.597, abs=1e-3)
    assert exact.worst_load_fraction_p99.value == 4  # 99.016 % have no more
    assert exact.throughput_fraction.value == pytest.approx(0.6564, abs=1e-4)
    assert exact.slowest_fraction.value == pytest.approx(0.41, abs=1e-3)


@pytest.mark.parametrize("num_flows", [2, 5, 8])
def test_the_closed_form_lies_in_the_sampled_interval(two_tors: Fabric, num_flows: int) -> None:
    """The real hash and routing under 1,000 seeds; three half widths, for twelve figures are compared."""
    exact = distribute_over_seeds(two_tors, across(num_flows), HashSpec(), num_seeds=2)
    assert exact.is_exact
    sampled = measure_seeds(two_tors, across(num_flows), HashSpec(), range(1000)).summary()
    for name in NAMES:
        estimate: Estimate = getattr(sampled, name)
        assert getattr(exact, name).value == pytest.approx(estimate.value, abs=1.5 * estimate.half_width + 1e-9)


def test_small_flows_share_links_in_the_closed_form(two_tors: Fabric) -> None:
    """Eight flows at half a link's rate on eight links: three on one make it half again as full as it can be."""
    pairs = make_queue_pairs(np.repeat(np.arange(4), 2), np.repeat(8 + np.arange(4), 2))
    exact = distribute_over_seeds(two_tors, pairs, HashSpec(), num_seeds=2)
    most_loaded = UniformHashing(num_flows=8, num_links=8).max_load_probability
    load_of_count = np.maximum(np.arange(9) / 2, 1.0)  # the NICs' own links are full
    assert exact.is_exact
    assert exact.worst_load_fraction.value == pytest.approx(float(most_loaded @ load_of_count))
    assert exact.worst_load_fraction_p99.value == 2  # 4 flows
    assert exact.overload_probability.value == pytest.approx(float(most_loaded[3:].sum()))
    sampled = measure_seeds(two_tors, pairs, HashSpec(), range(500)).summary().worst_load_fraction
    assert exact.worst_load_fraction.value == pytest.approx(sampled.value, abs=1.5 * sampled.half_width)


def test_traffic_of_two_choices_is_sampled(fat_tree: Fabric) -> None:
    """Three tiers: the aggregation switch chooses too."""
    pairs = make_queue_pairs(np.arange(8), 8 + np.arange(8))
    sampled = distribute_over_seeds(fat_tree, pairs, HashSpec(), num_seeds=50)
    assert not sampled.is_exact
    assert sampled.num_seeds == 50
    assert sampled.throughput_fraction.low < sampled.throughput_fraction.value < sampled.throughput_fraction.high


def test_more_seeds_narrow_the_intervals(fat_tree: Fabric) -> None:
    """Sixteen times as many: a quarter of the width, within what chance allows."""
    pairs = make_queue_pairs(np.arange(8), 8 + np.arange(8))
    few, many = (distribute_over_seeds(fat_tree, pairs, HashSpec(), num_seeds=number) for number in (50, 800))
    for name in ("worst_load_fraction", "throughput_fraction", "slowest_fraction"):
        assert getattr(many, name).half_width == pytest.approx(getattr(few, name).half_width / 4, rel=0.4)


def test_the_99th_of_a_hundred_has_an_interval_when_seeds_suffice(fat_tree: Fabric) -> None:
    """Among 50 seeds none may lie above it, so its upper end is open; among 800 it is not."""
    pairs = make_queue_pairs(np.arange(8), 8 + np.arange(8))
    few, many = (distribute_over_seeds(fat_tree, pairs, HashSpec(), num_seeds=number) for number in (50, 800))
    assert few.worst_load_fraction_p99.high == np.inf
    assert many.worst_load_fraction_p99.high < np.inf
    assert _is_ordered(many)


def _is_ordered(distribution: SeedDistribution) -> bool:
    p99 = distribution.worst_load_fraction_p99
    return distribution.worst_load_fraction.value < p99.low <= p99.value <= p99.high
