"""Max-min fair rates: the textbook's cases, the compiled kernel held to exact fractions, and its certificate."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.topology.fairness import max_min_rates
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.reference import fairness as reference

NUM_PORTS = 5
TOLERANCE = 1e-9  # a port is full, and two rates are equal, to this fraction
Problem = tuple[list[list[int]], list[int], list[int | None], list[int]]  # paths, capacities, demands, weights


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to eight flows over five ports; few distinct capacities and demands, so that ties are common."""
    path = st.lists(st.integers(0, NUM_PORTS - 1), min_size=1, max_size=4, unique=True)
    paths = draw(st.lists(path, min_size=1, max_size=8))
    capacities = draw(st.lists(st.sampled_from([0, 1, 7, 100, 400]), min_size=NUM_PORTS, max_size=NUM_PORTS))
    demand = st.one_of(st.none(), st.sampled_from([0, 1, 3, 50, 1000]))
    demands = draw(st.lists(demand, min_size=len(paths), max_size=len(paths)))
    weights = draw(st.lists(st.integers(1, 5), min_size=len(paths), max_size=len(paths)))
    return paths, [giga * 10**9 for giga in capacities], [None if d is None else d * 10**9 for d in demands], weights


def rectangle(paths: list[list[int]]) -> NDArray[np.int32]:
    """Return paths as one array, NO_PORT after the last port."""
    port_QH = np.full((len(paths), max(map(len, paths), default=0)), NO_PORT, np.int32)
    for row, path in zip(port_QH, paths, strict=True):
        row[: len(path)] = path
    return port_QH


def solve(problem: Problem) -> FloatArray:
    """Return the compiled kernel's rates."""
    paths, capacities, demands, weights = problem
    demand_bps_Q = [np.inf if demand is None else demand for demand in demands]
    return max_min_rates(rectangle(paths), capacities, demand_bps_Q, weight_Q=weights)


def bottlenecks(
    port_QH: ArrayLike,
    capacity_bps_P: ArrayLike,
    rate_bps_Q: ArrayLike,
    *,
    weight_Q: ArrayLike | None = None,
) -> IntArray:
    """Return the first port on each flow's path that holds it back, NO_PORT where only its demand does; shape (Q,).

    It is a full port on which no flow has a higher rate for its weight: with one for each flow below its demand, and no
    port above its capacity, rates are max-min fair.
    """
    path_QH1 = np.pad(np.asarray(port_QH, np.int64), ((0, 0), (0, 1)), constant_values=NO_PORT)
    capacity_P = np.asarray(capacity_bps_P, np.float64)
    rate_Q = np.asarray(rate_bps_Q, np.float64)
    level_Q = rate_Q if weight_Q is None else rate_Q / np.asarray(weight_Q)
    flow_X, hop_X = np.nonzero(path_QH1 != NO_PORT)
    port_X = path_QH1[flow_X, hop_X]
    load_P = np.bincount(port_X, rate_Q[flow_X], minlength=len(capacity_P))
    highest_P = np.zeros(len(capacity_P))
    np.maximum.at(highest_P, port_X, level_Q[flow_X])
    is_full_P = load_P >= capacity_P * (1 - TOLERANCE)
    holds_QH1 = np.zeros(path_QH1.shape, bool)
    holds_QH1[flow_X, hop_X] = is_full_P[port_X] & (level_Q[flow_X] >= highest_P[port_X] * (1 - TOLERANCE))
    holds_QH1[:, -1] = True  # found where no port holds the flow
    return np.take_along_axis(path_QH1, holds_QH1.argmax(axis=1)[:, None], axis=1)[:, 0]


def test_long_flow_of_a_parking_lot_gets_what_short_ones_get() -> None:
    """Three ports of 10, one flow through all and one more at each: 5 for everyone."""
    assert max_min_rates([[0, 1, 2], [0, -1, -1], [1, -1, -1], [2, -1, -1]], [10] * 3).tolist() == [5, 5, 5, 5]


def test_a_flow_held_back_elsewhere_leaves_its_share_to_others() -> None:
    """Port 0 of 12 holds three flows at 4; the one of them that also uses port 1 of 18 leaves 14 there."""
    assert max_min_rates([[0, -1], [0, -1], [0, 1], [1, -1]], [12, 18]).tolist() == [4, 4, 4, 14]


def test_what_a_small_demand_leaves_is_shared() -> None:
    """10 for demands of 2, 2.6, 4 and 5: 2 and 2.6 are met, and 5.4 makes 2.7 each."""
    assert max_min_rates([[0]] * 4, [10], [2, 2.6, 4, 5]) == pytest.approx([2, 2.6, 2.7, 2.7])


def test_weight_counts_as_so_many_flows() -> None:
    """12 over weights 1, 2 and 3 are 2, 4 and 6."""
    assert max_min_rates([[0]] * 3, [12], weight_Q=[1, 2, 3]).tolist() == [2, 4, 6]


def test_a_demand_that_is_met_is_met_to_the_last_bit() -> None:
    """It is met at the level of demand over weight, which times the weight may be less."""
    assert 1 / 49 * 49 < 1
    assert max_min_rates([[0], [0]], [5], [1, np.inf], weight_Q=[49, 1]).tolist() == [1, 4]


def test_a_path_twice_through_a_port_takes_twice_of_it() -> None:
    """A loop of one flow beside another on 9: 3 twice, and 3."""
    assert max_min_rates([[0, 0], [0, -1]], [9]).tolist() == [3, 3]


def test_a_port_without_capacity_stops_its_flows_alone() -> None:
    """A dead port is a capacity of zero."""
    assert max_min_rates([[0, 1], [1, -1]], [0, 8]).tolist() == [0, 8]


def test_a_flow_that_crosses_nothing_gets_its_demand() -> None:
    """Traffic inside a host has no port."""
    assert max_min_rates(np.zeros((1, 0)), [], [3]).tolist() == [3]
    assert bottlenecks(np.zeros((1, 0)), [], [3]).tolist() == [NO_PORT]


def test_no_flows_have_no_rates() -> None:
    """An idle network is a network."""
    assert len(max_min_rates(np.zeros((0, 3)), [5])) == 0


@given(problems())
def test_kernel_agrees_with_exact_fractions(problem: Problem) -> None:
    """The slow truth stops one level at a time and rounds nothing."""
    assert solve(problem).tolist() == pytest.approx([float(rate) for rate in reference.exact_max_min_rates(*problem)])


@given(problems())
def test_every_flow_short_of_its_demand_has_a_bottleneck_and_no_port_is_above_capacity(problem: Problem) -> None:
    """Together the two are the definition of max-min fairness."""
    paths, capacities, demands, weights = problem
    rates = solve(problem)
    load = np.zeros(NUM_PORTS)
    for path, rate in zip(paths, rates, strict=True):
        load[path] += rate
    assert (load <= np.array(capacities) * (1 + TOLERANCE)).all()
    held_back = bottlenecks(rectangle(paths), capacities, rates, weight_Q=weights)
    for demand, rate, port in zip(demands, rates.tolist(), held_back, strict=True):
        assert port != NO_PORT or rate == demand


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_flows_and_ports_changes_no_bit(problem: Problem, random: Random) -> None:
    """Renumbered and shuffled, the same rates come back in the new order."""
    paths, capacities, demands, weights = problem
    port_numbers = random.sample(range(NUM_PORTS), NUM_PORTS)
    order = random.sample(range(len(paths)), len(paths))
    renumbered = [0] * NUM_PORTS
    for port, number in enumerate(port_numbers):
        renumbered[number] = capacities[port]
    shuffled: Problem = (
        [[port_numbers[port] for port in paths[flow]] for flow in order],
        renumbered,
        [demands[flow] for flow in order],
        [weights[flow] for flow in order],
    )
    assert solve(shuffled).tolist() == solve(problem)[order].tolist()


def test_thousands_of_stops_keep_to_the_fractions() -> None:
    """A ladder: flow k shares port k with flow k + 1, and no two ports are alike, so nearly every stop is its own."""
    num_flows = 120
    paths = [[max(flow - 1, 0), flow] if flow else [0] for flow in range(num_flows)]
    capacities = [10**11 + 7919 * (flow * flow % 1013) for flow in range(num_flows)]
    problem: Problem = (paths, capacities, [None] * num_flows, [1] * num_flows)
    expected = reference.exact_max_min_rates(*problem)
    assert len(set(expected)) > num_flows // 3
    errors = [abs(Fraction(rate) / true - 1) for rate, true in zip(solve(problem).tolist(), expected, strict=True)]
    assert max(errors) < 1e-13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1]], [5]), "a capacity for each port"),
        (([[0]], [-1]), "capacities are zero or more"),
        (([[0]], [5], [-1]), "demands are zero or more"),
        (([[0]], [5], [1, 2]), "a demand and a weight for each flow"),
        (([[-1]], [5]), "a flow without port has a demand"),
    ],
)
def test_what_has_no_answer_is_a_programmers_mistake(arguments: tuple[ArrayLike, ...], message: str) -> None:
    """C++ reads what it is given."""
    with pytest.raises(AssertionError, match=message):
        max_min_rates(*arguments)
