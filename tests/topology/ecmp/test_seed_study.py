"""Figures of seeds and of known paths."""

import numpy as np
import pytest

from fabrictune.topology.ecmp.collisions import analyze_collisions
from fabrictune.topology.ecmp.seed_distribution import _estimate_quantile
from fabrictune.topology.ecmp.seed_study import measure_network, measure_seeds
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network


def test_a_network_without_traffic_loses_nothing(two_tors: Fabric) -> None:
    """Nothing is offered, so all of it is carried."""
    nothing = make_queue_pairs([], [])
    figures = measure_seeds(two_tors, nothing, HashSpec(), [0]).responses()
    assert {name: value_S.tolist() for name, value_S in figures.items()} == {
        "overload_probability": [0],
        "worst_load_fraction": [0],
        "throughput_fraction": [1],
        "slowest_fraction": [1],
        "mean_nic_bps": [0],
        "slowest_connection_bps": [0],
    }


def test_known_paths_have_figures_without_uncertainty(two_tors: Fabric) -> None:
    """One flow alone has all it asks for."""
    result = measure_network(build_network(two_tors, make_queue_pairs([0], [8]), HashSpec()))
    assert (result.num_seeds, result.throughput_fraction.value, result.throughput_fraction.half_width) == (1, 1.0, 0.0)
    assert result.slowest_connection_bps.value == two_tors.port_rate_bps_P[0]


def test_a_connection_is_all_queue_pairs_between_two_nics(two_tors: Fabric) -> None:
    """NIC 0 sends half its rate to 8 and half to 9, by two queue pairs; NIC 1 all of it to 8, who has half for each."""
    pairs = make_queue_pairs([0, 0, 0, 0, 1], [8, 8, 9, 9, 8])
    result = measure_network(build_network(two_tors, pairs, HashSpec(seed=1)))
    report = analyze_collisions(build_network(two_tors, pairs, HashSpec(seed=1)))
    rate_bps_Q = report.fair_rates()
    connections = [rate_bps_Q[:2].sum(), rate_bps_Q[2:4].sum(), rate_bps_Q[4]]
    assert result.slowest_connection_bps.value == pytest.approx(min(connections))
    assert result.slowest_connection_bps.value > rate_bps_Q.min()
    assert result.mean_nic_bps.value == pytest.approx(sum(connections) / 2)


@pytest.mark.parametrize(("probability", "low", "high"), [(0.5, 39, 60), (0.9, 83, 96)])
def test_a_quantile_lies_between_order_statistics(probability: float, low: int, high: int) -> None:
    """Of 0 to 99: 1.96 deviations of a binomial, sqrt(100 p (1 - p)), are 9.8 and 5.9 places to either side."""
    estimate = _estimate_quantile(np.arange(100.0), probability)
    assert (estimate.low, estimate.high) == (low, high)


@pytest.mark.parametrize(("num_values", "low", "high"), [(4, 0, np.inf), (10, 0, 9)])
def test_a_quantile_of_few_values_lies_between_the_ends(num_values: int, low: int, high: float) -> None:
    """The median of four is from -2 to 4 places up, where there is none; that of ten from 0 to 9."""
    estimate = _estimate_quantile(np.arange(float(num_values)), 0.5)
    assert (estimate.low, estimate.high) == (low, high)


def test_one_seed_leaves_open_what_the_others_are(two_tors: Fabric) -> None:
    """Loads and rates are 0 at least, and shares 1 at most."""
    summary = measure_seeds(two_tors, make_queue_pairs(range(8), range(8, 16)), HashSpec(), [3]).summary()
    for name in ("worst_load_fraction", "mean_nic_bps", "slowest_connection_bps"):
        assert (getattr(summary, name).low, getattr(summary, name).high) == (0.0, np.inf)
    for name in ("throughput_fraction", "slowest_fraction"):
        assert (getattr(summary, name).low, getattr(summary, name).high) == (0.0, 1.0)


def test_seeds_are_counted_as_they_are_tried(two_tors: Fabric) -> None:
    """The share that is done, after each."""
    shares: list[float] = []

    def count(share: float, _note: str = "", /) -> None:
        shares.append(share)

    measure_seeds(two_tors, make_queue_pairs([0], [8]), HashSpec(), range(4), progress=count)
    assert shares == [0.25, 0.5, 0.75, 1.0]
