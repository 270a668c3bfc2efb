"""From replies to paths: any order, any number of times, and nothing made up."""

from collections.abc import Sequence
from ipaddress import IPv4Address
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.records import Severity
from fabrictune.topology.probing.findings import find_gaps
from fabrictune.topology.probing.observations import Ending, Hop, Observations
from fabrictune.topology.probing.packets import Probe, Reply, ReplyKind
from fabrictune.topology.probing.paths import ObservedPath, TargetPaths, group_paths
from fabrictune.topology.probing.plan import ProbeFlow
from tests.topology.simulated_wire import SOURCE, TARGET

FLOWS = [ProbeFlow(SOURCE, TARGET, port) for port in range(49152, 49156)]
LEAF, SPINE, OTHER_SPINE = 101, 201, 202


def reply(flow: ProbeFlow, distance: int, responder: int, kind: ReplyKind = ReplyKind.EXPIRED) -> Reply:
    """Return the answer to the first probe of a flow at a distance."""
    return Reply(probe=Probe(flow, distance, 0), distance=distance, responder_ipv4=responder, kind=kind)


def observe(replies: Sequence[Reply], *, furthest: int = 3) -> Observations:
    """Return what is known after all distances were asked for and these replies came."""
    seen = Observations(FLOWS)
    for _ in range(furthest):
        seen.advance()
    for one in replies:
        seen.add(one)
    return seen


def replies_of_two_paths() -> list[Reply]:
    """Return all replies: the first two flows over one spine, the others over the other."""
    return [
        answer
        for place, flow in enumerate(FLOWS)
        for answer in (
            reply(flow, 1, LEAF),
            reply(flow, 2, SPINE if place < 2 else OTHER_SPINE),
            reply(flow, 3, TARGET, ReplyKind.ARRIVED),
        )
    ]


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 11), max_size=20))
def test_paths_follow_from_the_set_of_replies_alone(random: Random, doubled: Sequence[int]) -> None:
    """Every order of the twelve replies, some of them twice, gives the same two paths."""
    replies = replies_of_two_paths()
    replies += [replies[place] for place in doubled]
    random.shuffle(replies)
    (target,) = group_paths(observe(replies))
    assert target.paths == (
        ObservedPath(hops=((LEAF,), (SPINE,), (TARGET,)), ending=Ending.ARRIVED, source_ports=(49152, 49153)),
        ObservedPath(hops=((LEAF,), (OTHER_SPINE,), (TARGET,)), ending=Ending.ARRIVED, source_ports=(49154, 49155)),
    )
    assert all(path.is_complete for path in target.paths)


@given(st.sets(st.integers(0, 11)))
def test_a_lost_reply_leaves_a_hop_unknown_and_changes_no_other(lost: set[int]) -> None:
    """Each flow keeps what was heard of it; nothing is filled in from the flow beside it."""
    replies = replies_of_two_paths()
    seen = observe([one for place, one in enumerate(replies) if place not in lost])
    for number, flow in enumerate(FLOWS):
        hops, ending = seen.path(flow)
        heard = [
            () if 3 * number + place in lost else (replies[3 * number + place].responder_ipv4,) for place in range(3)
        ]
        while heard and not heard[-1]:
            heard.pop()
        assert hops == tuple(heard)
        assert (ending is Ending.ARRIVED) == (3 * number + 2 not in lost)


def test_replies_to_what_was_never_sent_are_ignored() -> None:
    """Another flow's, and one of a distance that nobody has been asked for yet."""
    seen = observe([], furthest=1)
    seen.add(reply(ProbeFlow(SOURCE, TARGET, 50_000), 1, LEAF))
    seen.add(reply(FLOWS[0], 2, LEAF))
    assert seen.num_replies == 0
    assert seen.path(FLOWS[0]) == ((), Ending.SILENT)


def test_a_hop_that_answers_in_two_ways_is_shown_as_two() -> None:
    """One flow, one distance, two spines: packets are sprayed, or the route changed; the path is not complete."""
    replies = [*replies_of_two_paths(), reply(FLOWS[0], 2, OTHER_SPINE)]
    (target,) = group_paths(observe(replies))
    (changed,) = [path for path in target.paths if not path.is_complete]
    assert (changed.hops[1], changed.source_ports) == ((SPINE, OTHER_SPINE), (49152,))
    (finding,) = find_gaps([target], {SPINE: "spine0", OTHER_SPINE: "spine1"})
    assert (finding.id, finding.evidence) == ("probe.path-changed", ("spine0 or spine1",))


def test_what_was_not_seen_is_bounded() -> None:
    """64 ports all miss a path that carries 4.57 % with probability (1 - 0.0457) ** 64 = 0.05."""
    path = ObservedPath(hops=((LEAF,),), ending=Ending.ARRIVED, source_ports=tuple(range(64)))
    target = TargetPaths(source_ipv4=SOURCE, target_ipv4=TARGET, paths=(path,))
    assert target.unseen_fraction == pytest.approx(0.0457, abs=1e-4)
    assert (1 - target.unseen_fraction) ** 64 == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("hops", "ending", "rule", "severity", "actual"),
    [
        (((LEAF,), (TARGET,)), Ending.REFUSED, "probe.refused", Severity.ERROR, "probes rejected on the way"),
        (((LEAF,),), Ending.SILENT, "probe.silent", Severity.WARNING, "no answer beyond the last hop"),
        (((LEAF,),), Ending.CUT, "probe.cut", Severity.WARNING, "target not reached within --max-hops"),
        (((), (TARGET,)), Ending.ARRIVED, "probe.hop-unknown", Severity.WARNING, "hop 1 is unknown"),
        ((), Ending.SILENT, "probe.nothing-answers", Severity.ERROR, "no hop answers"),
    ],
)
def test_every_gap_is_a_finding(
    hops: tuple[Hop, ...], ending: Ending, rule: str, severity: Severity, actual: str
) -> None:
    """Unknown never passes unsaid; what a hop or filter refuses, or nobody answers, is an error."""
    path = ObservedPath(hops=hops, ending=ending, source_ports=(1, 2, 3))
    target = TargetPaths(source_ipv4=SOURCE, target_ipv4=TARGET, paths=(path,))
    (finding,) = find_gaps([target], {})
    assert (finding.id, finding.severity, finding.entity) == (rule, severity, str(IPv4Address(TARGET)))
    assert finding.actual == f"{actual} for 3 of 3 source ports"


def test_a_whole_path_is_no_finding() -> None:
    """Nothing to say."""
    assert find_gaps(group_paths(observe(replies_of_two_paths())), {}) == []
