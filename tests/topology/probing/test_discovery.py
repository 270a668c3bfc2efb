"""Discovery over a simulated network, whose replies are late, lost and doubled at will."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.topology.probing.discovery import Discovery, discover
from fabrictune.topology.probing.observations import Ending
from fabrictune.topology.probing.packets import Probe
from fabrictune.topology.probing.plan import ProbePlan
from tests.topology.simulated_wire import PROMPTLY, TARGET, Fate, SimulatedWire, true_path

NUM_PORTS = 12
RATE_PER_S = 100


def probe(fate: Fate = lambda probe, now_s: PROMPTLY, **settings: Any) -> tuple[Discovery, SimulatedWire]:
    """Discover the paths of twelve source ports."""
    wire = SimulatedWire(fate, settings.pop("refusing_distance", 0))
    plan = ProbePlan(targets=(TARGET,), rate_per_s=RATE_PER_S, num_source_ports=NUM_PORTS, **settings)
    return discover(plan, wire), wire


def test_without_loss_every_path_is_the_true_one_and_every_hop_is_asked_once() -> None:
    """Twelve flows of four hops are 48 probes, and nobody is asked beyond the target."""
    discovery, wire = probe()
    assert discovery.num_probes == len(wire.sent) == discovery.seen.num_replies == 4 * NUM_PORTS
    for flow in discovery.seen.flows:
        assert discovery.seen.path(flow) == (true_path(flow), Ending.ARRIVED)


def test_probes_keep_their_pace_and_the_five_tuple() -> None:
    """At 100 a second, probes are 10 ms apart; what a flow's probes differ in is the distance alone."""
    _, wire = probe()
    times = [time_s for time_s, _ in wire.sent]
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.01 - 1e-9
    distances = defaultdict(list)
    for _, sent in wire.sent:
        distances[sent.flow].append(sent.distance)
    assert set(map(tuple, distances.values())) == {(1, 2, 3, 4)}


@given(st.lists(st.lists(st.floats(0, 2.5), max_size=3), min_size=1, max_size=40))
def test_late_lost_and_doubled_replies_never_invent_a_hop(fates: Sequence[Sequence[float]]) -> None:
    """Up to 2.5 s late, where 0.5 s is waited: a hop is the true one or unknown, and none is added."""
    count = iter(range(10**9))
    discovery, _ = probe(lambda probe, now_s: fates[next(count) % len(fates)])
    for flow in discovery.seen.flows:
        hops, ending = discovery.seen.path(flow)
        truth = true_path(flow)
        assert all(hop in ((), real) for hop, real in zip(hops, truth, strict=False))
        assert len(hops) <= len(truth)
        assert ending is not Ending.ARRIVED or len(hops) == len(truth)


@given(st.lists(st.lists(st.floats(0, 0.45), min_size=1, max_size=3), min_size=1, max_size=40))
def test_reordered_and_doubled_replies_change_nothing(fates: Sequence[Sequence[float]]) -> None:
    """As long as each probe is answered in time, every path is whole and true."""
    count = iter(range(10**9))
    discovery, _ = probe(lambda probe, now_s: fates[next(count) % len(fates)])
    assert discovery.num_probes == 4 * NUM_PORTS
    for flow in discovery.seen.flows:
        assert discovery.seen.path(flow) == (true_path(flow), Ending.ARRIVED)


@pytest.mark.parametrize(("timeout_ms", "repeat_interval_s"), [(100, 0.02), (1200, 0.1)])
def test_what_is_lost_once_is_asked_again_more_slowly(timeout_ms: int, repeat_interval_s: float) -> None:
    """First attempts are lost: second ones find everything, at half the pace or spread over the timeout."""
    timeout_ps = timeout_ms * 10**9
    discovery, wire = probe(lambda probe, now_s: PROMPTLY if probe.attempt else (), timeout_ps=timeout_ps)
    assert discovery.num_probes == 2 * 4 * NUM_PORTS
    assert all(discovery.seen.path(flow)[1] is Ending.ARRIVED for flow in discovery.seen.flows)
    for attempt, interval_s in ((0, 0.01), (1, repeat_interval_s)):
        times = [time_s for time_s, sent in wire.sent if (sent.distance, sent.attempt) == (2, attempt)]
        assert [b - a for a, b in pairwise(times)] == pytest.approx([interval_s] * (NUM_PORTS - 1))


def test_a_silent_target_leaves_the_hops_before_it() -> None:
    """As an RDMA adapter does: three silent distances, three attempts each, and then nobody is asked any more."""
    discovery, wire = probe(lambda probe, now_s: PROMPTLY if probe.distance < 4 else ())
    for flow in discovery.seen.flows:
        assert discovery.seen.path(flow) == (true_path(flow)[:3], Ending.SILENT)
    assert max(sent.distance for _, sent in wire.sent) == 6
    assert discovery.num_probes == NUM_PORTS * (3 + 3 * 3)


def test_a_silent_hop_in_the_middle_stays_unknown() -> None:
    """The spines answer nothing: hop 2 is empty and the rest of the path is there."""
    discovery, _ = probe(lambda probe, now_s: PROMPTLY if probe.distance != 2 else ())
    for flow in discovery.seen.flows:
        first, _, *rest = true_path(flow)
        assert discovery.seen.path(flow) == ((first, (), *rest), Ending.ARRIVED)


def test_a_network_that_answers_nothing_ends_the_probing() -> None:
    """Three distances of three attempts of twelve flows; no path has a hop."""
    discovery, _ = probe(lambda probe, now_s: ())
    assert discovery.num_probes == 3 * 3 * NUM_PORTS
    assert {discovery.seen.path(flow) for flow in discovery.seen.flows} == {((), Ending.SILENT)}


def test_a_filter_on_the_way_ends_the_path_where_it_stands() -> None:
    """The spine says that it will not: two hops, refused."""
    discovery, wire = probe(refusing_distance=2)
    for flow in discovery.seen.flows:
        assert discovery.seen.path(flow) == (true_path(flow)[:2], Ending.REFUSED)
    assert max(sent.distance for _, sent in wire.sent) == 2


def test_the_furthest_distance_is_not_passed() -> None:
    """Two of four hops were asked for: the paths are cut, not silent."""
    discovery, _ = probe(max_hops=2)
    assert {discovery.seen.path(flow)[1] for flow in discovery.seen.flows} == {Ending.CUT}


def test_a_hop_that_limits_its_replies_is_heard_in_the_end() -> None:
    """The first leaf answers 5 a second: at 100 probes a second, then at 24 and less, six attempts hear all of 12."""
    answered: list[float] = []

    def limited(probe: Probe, now_s: float) -> Sequence[float]:
        if probe.distance == 1:
            if sum(now_s - time_s < 1.0 for time_s in answered) >= 5:
                return ()
            answered.append(now_s)
        return PROMPTLY

    discovery, _ = probe(limited, attempts=6)
    assert all(discovery.seen.path(flow) == (true_path(flow), Ending.ARRIVED) for flow in discovery.seen.flows)


def test_it_never_sends_more_or_takes_longer_than_it_said() -> None:
    """The worst case, computed before: a target that is always one hop further, answered by every second probe."""
    count = iter(range(10**9))
    plan = ProbePlan(targets=(TARGET,), rate_per_s=50, num_source_ports=5, max_hops=3, attempts=2)
    wire = SimulatedWire(lambda probe, now_s: PROMPTLY if probe.distance == 3 or next(count) % 2 else ())
    discovery = discover(plan, wire)
    assert discovery.num_probes <= plan.max_probes == 5 * 3 * 2
    assert discovery.duration_s <= plan.max_duration_s == pytest.approx(3 * (5 / 50 + 0.5 + 2 * 0.5))


def test_progress_rises_to_no_more_than_one() -> None:
    """It counts distances and attempts, and may end early."""
    told: list[float] = []
    plan = ProbePlan(targets=(TARGET,), rate_per_s=100, num_source_ports=2, max_hops=4)
    discover(plan, SimulatedWire(), lambda fraction, note="", /: told.append(fraction))
    assert told == sorted(told)
    assert 0 < told[0] <= told[-1] <= 1
