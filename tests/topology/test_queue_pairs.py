"""Queue-pair numbers are distinct on a NIC and the same on every run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.rocev2 import source_port
from fabrictune.topology.queue_pairs import FIRST_QPN, join_queue_pairs, make_queue_pairs


def test_numbers_count_up_on_each_nic() -> None:
    """NIC 0 has ends of pairs 0, 1 and 2, so its numbers are the first three in that order."""
    queue_pairs = make_queue_pairs([0, 0, 1], [1, 2, 0])
    assert (queue_pairs.source_qpn_Q - FIRST_QPN).tolist() == [0, 1, 1]
    assert (queue_pairs.destination_qpn_Q - FIRST_QPN).tolist() == [0, 0, 2]
    assert queue_pairs.priority_Q.tolist() == [3, 3, 3]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_no_two_ends_on_a_nic_share_a_number(pairs: list[tuple[int, int]]) -> None:
    """A queue-pair number names one end on its NIC, also where a pair begins and ends on the same one."""
    source, destination = ([pair[side] for pair in pairs] for side in (0, 1))
    queue_pairs = make_queue_pairs(source, destination)
    ends = list(zip(source, queue_pairs.source_qpn_Q.tolist(), strict=True))
    ends += list(zip(destination, queue_pairs.destination_qpn_Q.tolist(), strict=True))
    assert len(set(ends)) == len(ends)


def test_source_port_is_the_kernels() -> None:
    """The port follows from the two numbers by the rule of foundation/rocev2.py."""
    queue_pairs = make_queue_pairs(np.arange(8), np.arange(8) + 8, first_qpn=0x45)
    expected = source_port(queue_pairs.source_qpn_Q, queue_pairs.destination_qpn_Q)
    assert queue_pairs.source_port_Q.tolist() == expected.tolist()


def test_numbers_beyond_24_bits_are_refused() -> None:
    """Two ends from 2**24 - 1 would need 2**24, which the header cannot carry."""
    with pytest.raises(InputError, match="allowed: 0 to 16777215: a number has 24 bits"):
        make_queue_pairs([0, 0], [1, 1], first_qpn=2**24 - 1)


def test_a_priority_has_three_bits() -> None:
    """802.1p knows 0 to 7."""
    with pytest.raises(InputError, match="priority 8"):
        make_queue_pairs([0], [1], priority=8)


def test_joined_parts_are_numbered_one_after_another_on_each_nic() -> None:
    """NIC 1 has two ends in the first part, so the second part's pair 1 -> 2 begins there with the third number."""
    first, second = make_queue_pairs([0, 0], [1, 1], priority=2), make_queue_pairs([1], [2], priority=4)
    joined = join_queue_pairs([first, second])
    assert (joined.source_qpn_Q - FIRST_QPN).tolist() == [0, 1, 2]
    assert (joined.destination_qpn_Q - FIRST_QPN).tolist() == [0, 1, 0]
    assert joined.priority_Q.tolist() == [2, 2, 4]
    assert joined.source_port_Q.tolist() == source_port(joined.source_qpn_Q, joined.destination_qpn_Q).tolist()


def test_a_part_that_meets_no_other_keeps_its_numbers_and_ports() -> None:
    """A source port that follows from no number (a flow label's, say) stays where nothing is renumbered."""
    own = replace(make_queue_pairs([3], [4]), source_port_Q=np.array([0xC001]))
    joined = join_queue_pairs([make_queue_pairs([0], [1]), own])
    assert joined.source_port_Q[1] == 0xC001
    assert joined.source_qpn_Q.tolist() == [FIRST_QPN, FIRST_QPN]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8), max_size=4))
def test_no_two_ends_of_joined_parts_share_a_number(parts: list[list[tuple[int, int]]]) -> None:
    """As in a single part, whatever NICs the parts have in common, and whether they have any pair at all."""
    joined = join_queue_pairs(
        [make_queue_pairs([pair[0] for pair in part], [pair[1] for pair in part]) for part in parts]
    )
    ends = list(zip(joined.source_nic_Q.tolist(), joined.source_qpn_Q.tolist(), strict=True))
    ends += list(zip(joined.destination_nic_Q.tolist(), joined.destination_qpn_Q.tolist(), strict=True))
    assert len(set(ends)) == len(ends) == 2 * sum(map(len, parts))


def test_joined_parts_run_out_of_numbers_too() -> None:
    """Two parts that each reach the last number cannot stand on one NIC."""
    part = make_queue_pairs([0], [1], first_qpn=2**24 - 1)
    with pytest.raises(InputError, match="24 bits"):
        join_queue_pairs([part, part])
