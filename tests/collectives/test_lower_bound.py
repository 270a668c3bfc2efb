"""The lower bound, worked out by hand, and held against schedules of every order that one carrier could take."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.collectives.lower_bound import UniformLinks, lower_bound_ps, preemptive_end_ps
from fabrictune.collectives.schedule import GroupShape, from_moves
from fabrictune.collectives.schedules import direct, hierarchical, ring

LINKS = UniformLinks(
    rate_bps=8e12,  # a byte a picosecond
    num_hops=2,
    delay_ps=1000,
    mtu_bytes=100,
    overhead_bytes=10,
    least_bytes=20,
    nvlink_rate_bps=80e12,
)


def test_one_message_is_its_bytes_its_last_packet_and_its_cables() -> None:
    """250 B are packets of 110, 110 and 60 B; behind the first link a full one still goes before the last."""
    bound_ps = lower_bound_ps(direct.send(GroupShape(num_members=2)), GroupShape(num_members=2), 250, LINKS)
    assert bound_ps == 280 + 110 + 1000


def test_a_ring_waits_for_every_step() -> None:
    """Four members, 400 B: six steps of a packet of 110 B, sent twice, and 1,000 ps of cables."""
    shape = GroupShape(num_members=4)
    assert lower_bound_ps(ring.all_reduce(shape), shape, 400, LINKS) == 6 * (110 + 110 + 1000)


def test_a_nic_sends_everything_it_has() -> None:
    """All-to-all of four, 400 B each: three packets of 110 B out of every NIC, and the last one's way."""
    shape = GroupShape(num_members=4)
    assert lower_bound_ps(direct.all_to_all(shape), shape, 400, LINKS) == 330 + 110 + 1000


def test_what_waits_behind_a_carrier_counts() -> None:
    """Member 0 sends two chunks of 100 B, each of which goes one link further: 110 + 110 of its NIC, then the way of
    the second, and one more message.
    """
    moves = [(0, 0, 1, 0, False), (0, 0, 2, 1, False), (1, 1, 3, 0, False), (1, 2, 4, 1, False)]
    schedule = from_moves(5, 5, moves)
    way_ps = 110 + 1000
    assert lower_bound_ps(schedule, GroupShape(num_members=5), 500, LINKS) == 2 * 110 + way_ps + 110 + way_ps


def test_a_message_of_one_byte_crosses_both_links_and_an_empty_one_none() -> None:
    """20 B at least on either wire; of four parts of a byte one is not empty, and goes round in six messages."""
    pair, shape = GroupShape(num_members=2), GroupShape(num_members=4)
    assert lower_bound_ps(direct.send(pair), pair, 1, LINKS) == 20 + 20 + 1000
    assert lower_bound_ps(ring.all_reduce(shape), shape, 1, LINKS) == 6 * (20 + 20 + 1000)


def test_bytes_on_the_wire_are_those_of_whole_packets() -> None:
    """Packets of 100 B and 10 B of headers, 20 B at least; none for no bytes."""
    payload_M, wire_M = np.array([0, 1, 10, 11, 100, 101, 200]), [0, 20, 20, 21, 110, 130, 220]
    assert LINKS.wire_bytes(payload_M).tolist() == wire_M


def test_a_message_is_behind_its_nic_by_its_longest_packet_at_the_end() -> None:
    """Over three links: a packet of 60 B alone, of 110 B where a full one or more come before; and the cables."""
    links = replace(LINKS, num_hops=3)
    assert links.tail_ps(np.array([50, 150, 250])).tolist() == [2 * 60 + 1000, 2 * 110 + 1000, 2 * 110 + 1000]


def test_nics_and_nvlinks_carry_at_one_time() -> None:
    """Member 2 takes 1,000 B over NVLink from member 3 of its host and over its NIC from member 0 of the other.

    100 ps beside ten packets of 110 B, a packet's way and the cable: neither waits for the other.
    """
    shape = GroupShape(num_members=4, local_size=2)
    moves = [(0, 3, 2, 0, False), (0, 0, 2, 1, False)]
    slow = replace(LINKS, nvlink_rate_bps=8e12 / 2)  # 2,000 ps
    assert lower_bound_ps(from_moves(4, 2, moves), shape, 2000, LINKS) == 10 * 110 + 110 + 1000
    assert lower_bound_ps(from_moves(4, 2, moves), shape, 2000, slow) == 10 * 110 + 110 + 1000


def test_inside_a_host_nvlink_carries_it() -> None:
    """Two GPUs of one host exchange halves of 400 B, twice, at ten bytes a picosecond."""
    shape = GroupShape(num_members=2, local_size=2)
    assert lower_bound_ps(hierarchical.all_reduce(shape), shape, 400, LINKS) == 2 * 20


def test_a_message_crosses_nvlink_to_the_nic_on_the_receivers_rail() -> None:
    """Member 0 of the first host sends 100 B to member 1 of the second: 10 ps of NVLink, then two links and a cable."""
    shape = GroupShape(num_members=4, local_size=2)
    own_rail, other_rail = (from_moves(4, 1, [(0, 0, receiver, 0, False)]) for receiver in (2, 3))
    assert lower_bound_ps(own_rail, shape, 100, LINKS) == 110 + 110 + 1000
    assert lower_bound_ps(other_rail, shape, 100, LINKS) == 10 + 110 + 110 + 1000


def test_what_moves_nothing_takes_no_time() -> None:
    """A barrier's messages are empty."""
    shape = GroupShape(num_members=4)
    assert lower_bound_ps(ring.all_reduce(shape), shape, 0, LINKS) == 0


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 20)] * 3), min_size=1, max_size=5))
def test_no_order_of_a_carrier_beats_the_rule(messages: list[tuple[int, int, int]]) -> None:
    """The bound may interrupt messages and the orders tried may not, so it is never above the best of them."""
    head, busy, tail = (np.array(column, float) for column in zip(*messages, strict=True))

    def end_of(order: tuple[int, ...]) -> float:
        now, end = 0.0, 0.0
        for message in order:
            now = max(now, head[message]) + busy[message]
            end = max(end, now + tail[message])
        return end

    best = min(end_of(order) for order in permutations(range(len(messages))))
    bound = preemptive_end_ps(head, busy, tail)
    assert bound <= best
    assert bound >= (head + busy + tail).max()
    assert bound >= head.min() + busy.sum() + tail.min()


def test_the_rule_takes_the_longest_tail_first() -> None:
    """Two messages ready at once, tails 5 and 50: 10 + 50 and then 20 + 5, where the other order ends at 70."""
    assert preemptive_end_ps(np.zeros(2), np.full(2, 10.0), np.array([5.0, 50.0])) == pytest.approx(60)
