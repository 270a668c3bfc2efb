"""Messages of an exchange with experts, by hand on two hosts of two ranks, and added up on drawn traffic."""

import numpy as np
import pytest

from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.collectives.expert_exchange import TokenCounts, counts_of_draw
from fabrictune.collectives.expert_messages import Deduplication, Exchange, ExpertMessages, Message
from fabrictune.collectives.expert_routing import RoutingSpec, draw_experts, popularity
from fabrictune.collectives.expert_traffic import as_flows, put_on_wires
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.seeds import stream
from fabrictune.foundation.traces import UNKNOWN, Medium, TrafficTrace
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import Placement

# Tokens of rank 0 (row 0): three choices of rank 1, two of 2, five of 3; as tokens 2, 2 and 4; on the second host 5.
COUNTS = TokenCounts(
    choices_nn=np.array([[0, 3, 2, 5], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    ranks_nn=np.array([[0, 2, 2, 4], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    hosts_nH=np.array([[2, 5], [1, 0], [0, 0], [0, 0]]),
)
TWO_HOSTS = Placement(
    layout=ParallelLayout(dp=4, ep=4),
    host_R=np.array([0, 0, 1, 1]),
    gpu_R=np.array([0, 1, 0, 1]),
    nic_R=np.array([0, 1, 2, 3]),
)


def moved(messages: list[Message]) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """Return sender, receiver, bytes and waits of the messages that move something."""
    return [(one.sender, one.receiver, one.num_bytes, one.waits) for one in messages if one.num_bytes]


def planned(deduplication: Deduplication, *phases: str, slice_bytes: int | None = None) -> list[Message]:
    """Return the messages of four ranks, of 10 B a token."""
    exchange = Exchange(counts=COUNTS, ranks_per_host=2, deduplication=deduplication, slice_bytes=slice_bytes)
    plan = ExpertMessages(exchange=exchange)
    for phase in phases:
        getattr(plan, phase)(10)
    return plan.messages


def test_a_copy_for_each_expert_or_each_rank_goes_straight() -> None:
    """From the right neighbour on: 3, 2 and 5 copies, or 2, 2 and 4."""
    assert moved(planned("none", "dispatch")) == [(0, 1, 30, ()), (0, 2, 20, ()), (0, 3, 50, ()), (1, 0, 10, ())]
    assert moved(planned("rank", "dispatch")) == [(0, 1, 20, ()), (0, 2, 20, ()), (0, 3, 40, ()), (1, 0, 10, ())]


def test_a_copy_for_a_host_crosses_the_fabric_once_and_is_passed_on() -> None:
    """Five tokens of rank 0 go to rank 2, its place on the second host, which has two of them and gives rank 3 four."""
    messages = planned("node", "dispatch")
    assert moved(messages) == [(0, 1, 20, ()), (1, 0, 10, ()), (0, 2, 50, ()), (2, 3, 40, (4,))]
    assert (messages[4].sender, messages[4].receiver) == (0, 2)


def test_results_come_back_the_same_way_added_up() -> None:
    """Rank 3 gives rank 2 its four, rank 2 sends the sums of five tokens once rank 3's have come."""
    assert moved(planned("node", "combine")) == [(1, 0, 20, ()), (0, 1, 10, ()), (3, 2, 40, ()), (2, 0, 50, (4,))]


def test_experts_work_when_all_tokens_have_come() -> None:
    """Rank 3's work waits for what is passed on to it, its results for its work."""
    messages = planned("node", "dispatch", "work", "combine")
    works = {message.sender: row for row, message in enumerate(messages) if message.sender == message.receiver}
    assert sorted(works) == [0, 1, 2, 3]
    assert {messages[row].delay_ps for row in works.values()} == {10}
    (passed_on,) = (row for row, one in enumerate(messages) if (one.sender, one.receiver, one.num_bytes) == (2, 3, 40))
    assert passed_on in messages[works[3]].waits
    (result,) = (one for one in messages if (one.sender, one.receiver, one.num_bytes) == (3, 2, 40))
    assert result.waits == (works[3],)


def test_slices_are_passed_on_one_by_one() -> None:
    """50 B in slices of 20: 17, 17, 16 to rank 2, and as many of 40 B on to rank 3, each after its own.

    All first slices stand before the second ones, so that whoever has several messages ready sends in turn.
    """
    messages = planned("node", "dispatch", slice_bytes=20)
    _, traffic = put_on_wires([([0, 1, 2, 3], messages)], TWO_HOSTS, ExpansionSpec())
    first = np.flatnonzero(traffic.medium_N == Medium.FABRIC)
    assert traffic.bytes_N[first].tolist() == [17, 17, 16]
    passed_on = [row for row in range(len(traffic)) if len(traffic.dependencies.of(row)) and traffic.bytes_N[row]]
    assert traffic.bytes_N[passed_on].tolist() == [14, 13, 13]
    assert [traffic.dependencies.of(row).tolist() for row in passed_on] == [[row] for row in first.tolist()]
    assert set(traffic.medium_N[passed_on].tolist()) == {Medium.NVLINK}
    assert max(first[0], passed_on[0]) < min(first[1], passed_on[1])


def test_what_stays_in_a_host_is_cut_as_well() -> None:
    """Two tokens of rank 0 are for its own host, 20 B in slices of 8: those for rank 1 go in three parts."""
    messages = planned("node", "dispatch", slice_bytes=8)
    _, traffic = put_on_wires([([0, 1, 2, 3], messages)], TWO_HOSTS, ExpansionSpec())
    inside_N = (traffic.source_N == 0) & (traffic.destination_N == 1) & (traffic.medium_N == Medium.NVLINK)
    assert traffic.bytes_N[inside_N].tolist() == [7, 7, 6]


def test_results_are_added_up_at_different_ranks_at_one_time() -> None:
    """On a host of three each sends to another one at each step: 1 to 0, 2 to 1, 0 to 2, and then the other way."""
    counts = TokenCounts(
        choices_nn=np.ones((6, 6), np.int64), ranks_nn=np.ones((6, 6), np.int64), hosts_nH=np.ones((6, 2), np.int64)
    )
    plan = ExpertMessages(exchange=Exchange(counts=counts, ranks_per_host=3, deduplication="node"))
    plan.combine(1)
    second_host = [(one.sender, one.receiver) for one in plan.messages[12:] if one.sender < 3 and one.receiver < 3]
    assert second_host == [(1, 0), (2, 1), (0, 2), (2, 0), (0, 1), (1, 2)]


def test_work_waits_for_every_slice() -> None:
    """Rank 3 has three slices to wait for, and sends its results in three that wait for its work."""
    messages = planned("node", "dispatch", "work", "combine", slice_bytes=20)
    _, traffic = put_on_wires([([0, 1, 2, 3], messages)], TWO_HOSTS, ExpansionSpec())
    (work,) = np.flatnonzero((traffic.source_N == 3) & (traffic.destination_N == 3))
    awaited = traffic.dependencies.of(int(work))
    assert traffic.bytes_N[awaited].sum() == 40
    sums = np.flatnonzero((traffic.source_N == 3) & (traffic.destination_N == 2) & (traffic.medium_N == Medium.NVLINK))
    assert [traffic.dependencies.of(row).tolist() for row in sums.tolist()] == [[work]] * 3


def drawn(deduplication: Deduplication, seed: int = 0) -> tuple[TokenCounts, QueuePairs, TrafficTrace]:
    """Return what 8 ranks on two hosts of four dispatch: 300 tokens each, top-4 of 32 experts, 100 B a token."""
    routing = RoutingSpec(num_experts=32, num_choices=4)
    tokens = [draw_experts(routing, 300, popularity(32, 0.0, stream(0, "p")), stream(seed, rank)) for rank in range(8)]
    counts = counts_of_draw(tokens, 32, np.arange(8) // 4)
    plan = ExpertMessages(exchange=Exchange(counts=counts, ranks_per_host=4, deduplication=deduplication))
    plan.dispatch(100)
    placement = Placement(
        layout=ParallelLayout(dp=8, ep=8), host_R=np.arange(8) // 4, gpu_R=np.arange(8) % 4, nic_R=np.arange(8)
    )
    return counts, *put_on_wires([(range(8), plan.messages)], placement, ExpansionSpec())


@pytest.mark.parametrize("deduplication", ["none", "rank", "node"])
def test_bytes_of_a_pair_are_the_draws(deduplication: Deduplication) -> None:
    """Every NIC receives the copies that were drawn for its rank, to the byte; with nodes, those for its host."""
    counts, queue_pairs, traffic = drawn(deduplication)
    on_fabric_N = traffic.medium_N == Medium.FABRIC
    received_R = np.bincount(traffic.destination_N[on_fabric_N], weights=traffic.bytes_N[on_fabric_N], minlength=8)
    is_far_nn = np.arange(8)[:, None] // 4 != np.arange(8) // 4
    if deduplication == "node":
        expected = [100 * int(counts.hosts_nH[(rank + 4) % 8, rank // 4]) for rank in range(8)]
    else:
        copies_nn = counts.choices_nn if deduplication == "none" else counts.ranks_nn
        expected = (100 * (copies_nn * is_far_nn).sum(axis=0)).tolist()
    assert received_R.tolist() == expected
    flows = as_flows(queue_pairs, traffic)
    assert flows.bytes_N.sum() == traffic.bytes_N[on_fabric_N].sum()
    assert np.array_equal(flows.source_N, queue_pairs.source_nic_Q)


def test_a_node_saves_copies_and_loses_none() -> None:
    """Ranks get the same tokens over NVLink that they would have got straight."""
    counts, _, by_rank = drawn("rank")
    _, _, by_node = drawn("node")
    fabric = [int(one.bytes_N[one.medium_N == Medium.FABRIC].sum()) for one in (by_rank, by_node)]
    assert fabric[1] < fabric[0]
    nvlink_N = by_node.medium_N == Medium.NVLINK
    in_nn = np.zeros((8, 8), np.int64)
    np.add.at(in_nn, (by_node.source_N[nvlink_N], by_node.destination_N[nvlink_N]), by_node.bytes_N[nvlink_N])
    passing = np.arange(8)
    far = counts.ranks_nn[(passing + 4) % 8]  # of the rank with the same place on the other host
    inside_nn = np.arange(8)[:, None] // 4 == np.arange(8) // 4
    np.fill_diagonal(inside_nn, val=False)
    assert np.array_equal(in_nn, np.where(inside_nn, 100 * (counts.ranks_nn + far), 0))


def test_pxn_is_a_switch() -> None:
    """From rank 0 to rank 3: through rank 1's NIC, which NVLink leads to, or through its own."""
    message = [Message(sender=0, receiver=3, num_bytes=100)]
    queue_pairs, traffic = put_on_wires([(range(4), message)], TWO_HOSTS, ExpansionSpec())
    assert (queue_pairs.source_nic_Q.tolist(), traffic.relayed_to_N.tolist()) == ([1], [1])
    assert traffic.notes[0].startswith("expansion.pxn: true")
    queue_pairs, traffic = put_on_wires([(range(4), message)], TWO_HOSTS, ExpansionSpec(pxn=False))
    assert (queue_pairs.source_nic_Q.tolist(), traffic.relayed_to_N.tolist()) == ([0], [UNKNOWN])
    assert traffic.notes[0].startswith("expansion.pxn: false")


def test_messages_take_several_queue_pairs() -> None:
    """Split over three: 34, 33 and 33 B; in turn: whole on the first."""
    message = [Message(sender=0, receiver=2, num_bytes=100)]
    for use, sizes in (("split", [34, 33, 33]), ("round_robin", [100])):
        options = ExpansionSpec(qps_per_connection=3, qp_use=use)  # type: ignore[arg-type]
        queue_pairs, traffic = put_on_wires([(range(4), message)], TWO_HOSTS, options)
        assert len(queue_pairs) == 3
        assert traffic.bytes_N.tolist() == sizes
        assert traffic.qp_N.tolist() == list(range(len(sizes)))
