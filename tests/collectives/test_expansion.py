"""Expansion: what a trace becomes on a fabric, counted by hand on small jobs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.collectives import plans
from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.collectives.channels import over_channels
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import ring
from fabrictune.foundation.errors import InputError, TraceError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Medium, Operation, TrafficTrace
from fabrictune.netsim.config.queues import PriorityConfig
from fabrictune.topology.fabric import NO_NIC, Fabric, NodeKind
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import place


def star(num_hosts: int, nics_per_host: int = 1) -> Fabric:
    """Return hosts on one switch, each with as many NICs as asked for."""
    num_nics = num_hosts * nics_per_host
    nic_host = np.repeat(np.arange(num_hosts), nics_per_host)
    return Fabric(
        name="star",
        node_name_N=(*(f"host{host}" for host in range(num_hosts)), "switch"),
        node_kind_N=np.array([NodeKind.HOST] * num_hosts + [NodeKind.SWITCH]),
        node_tier_N=np.array([0] * num_hosts + [1]),
        node_group_N=np.zeros(num_hosts + 1, np.int64),
        port_name_P=(*(f"nic{nic}" for nic in range(num_nics)), *(f"port{port}" for port in range(num_nics))),
        port_node_P=np.concatenate([nic_host, np.full(num_nics, num_hosts)]),
        port_peer_P=np.concatenate([np.arange(num_nics) + num_nics, np.arange(num_nics)]),
        port_rate_bps_P=np.full(2 * num_nics, 400 * 10**9),
        port_delay_ps_P=np.full(2 * num_nics, 10_000),
        port_nic_P=np.concatenate([np.arange(num_nics), np.full(num_nics, NO_NIC)]),
        nic_host_C=nic_host,
        nic_rail_C=np.tile(np.arange(nics_per_host), num_hosts),
        nic_ipv4_C=0x0A000001 + np.arange(num_nics),
    )


def expand_step(
    dp: int, num_bytes: int, *, gpus_per_host: int = 1, options: ExpansionSpec | None = None
) -> tuple[QueuePairs, TrafficTrace]:
    """Return the expansion of one data-parallel all-reduce on a star."""
    layout = ParallelLayout(dp=dp)
    fabric = star(-(-dp // gpus_per_host), gpus_per_host)
    placement = place(layout, fabric, "contiguous", gpus_per_host=gpus_per_host)
    trace = collective_step(layout, num_bytes)
    return expand(trace, placement, fabric, options or ExpansionSpec())


def two_requests(second_waits: bool) -> CommTrace:
    """Return two ranks that all-reduce twice, with 7 ps of work before each."""
    zeros = np.zeros(4, np.int64)
    return CommTrace(
        groups=((0, 1),),
        rank_N=np.array([0, 1, 0, 1]),
        operation_N=zeros + Operation.ALL_REDUCE,
        group_N=zeros,
        peer_N=zeros + UNKNOWN,
        bytes_N=zeros + 100,
        compute_before_ps_N=zeros + 7,
        step_N=zeros,
        axis_N=("dp",) * 4,
        policy_N=("none",) * 4,
        tag_N=("",) * 4,
        dependencies=Dependencies.from_lists([[], [], [0], [1]] if second_waits else [[]] * 4),
    )


@settings(deadline=None)
@given(dp=st.integers(1, 12), num_bytes=st.integers(0, 1000))
def test_a_rank_moves_what_the_closed_form_says(dp: int, num_bytes: int) -> None:
    """Every rank sends its 2(n - 1) chunks: n ranks together 2(n - 1)S, each within a byte a step of 2(n - 1)/n S."""
    _, traffic = expand_step(dp, num_bytes)
    assert traffic.bytes_N.sum() == 2 * (dp - 1) * num_bytes
    wire = traffic.medium_N == Medium.FABRIC
    sent = np.bincount(traffic.source_N[wire], weights=traffic.bytes_N[wire], minlength=dp)
    assert np.abs(sent - 2 * (dp - 1) * num_bytes / dp).max() <= 2 * dp


def test_a_ring_has_one_queue_pair_for_each_edge_and_keeps_it() -> None:
    """Four ranks on four hosts: edges 0-1, 1-2, 2-3, 3-0, used six times each by the six steps."""
    queue_pairs, traffic = expand_step(4, 4000)
    assert queue_pairs.source_nic_Q.tolist() == [0, 1, 2, 3]
    assert queue_pairs.destination_nic_Q.tolist() == [1, 2, 3, 0]
    assert np.bincount(traffic.qp_N[traffic.qp_N != UNKNOWN]).tolist() == [6, 6, 6, 6]


def test_neighbours_on_one_host_use_nvlink() -> None:
    """Eight ranks on two hosts of four: six edges stay inside, two cross; GPUs are numbered by rank."""
    queue_pairs, traffic = expand_step(8, 8000, gpus_per_host=4)
    assert len(queue_pairs) == 2
    assert np.count_nonzero(traffic.medium_N == Medium.FABRIC) == 2 * 14
    inside = traffic.medium_N == Medium.NVLINK
    assert np.count_nonzero(inside) == 6 * 14
    edges = set(zip(traffic.source_N[inside].tolist(), traffic.destination_N[inside].tolist(), strict=True))
    assert edges == {(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)}


def test_a_message_crosses_nvlink_to_the_nic_on_its_receivers_rail() -> None:
    """Ranks 3 and 7 send to 4 and 0, through the NICs of ranks 0 and 4; the six edges inside are relayed nowhere."""
    queue_pairs, traffic = expand_step(8, 8000, gpus_per_host=4)
    assert queue_pairs.source_nic_Q.tolist() == [0, 4]
    is_outside = traffic.medium_N == Medium.FABRIC
    relays = set(
        zip(traffic.relayed_from_N[is_outside].tolist(), traffic.relayed_to_N[is_outside].tolist(), strict=True)
    )
    assert relays == {(3, 0), (7, 4)}
    assert set(traffic.relayed_from_N[~is_outside].tolist()) == {UNKNOWN}


def test_gpus_that_share_a_nic_need_no_relay() -> None:
    """Two GPUs beside each NIC: the NIC on the receiver's rail is the sender's own."""
    layout, fabric = ParallelLayout(dp=4), star(2)
    placement = place(layout, fabric, "contiguous", gpus_per_host=2)
    _, traffic = expand(collective_step(layout, 4000), placement, fabric, ExpansionSpec())
    assert np.count_nonzero(traffic.medium_N == Medium.FABRIC) == 2 * 6
    assert set(traffic.relayed_to_N.tolist()) == {UNKNOWN}


def test_chunks_of_no_bytes_cross_nothing() -> None:
    """Three bytes among five ranks: chunks 3 and 4 are empty, 3 * 8 messages remain on the wires."""
    _, traffic = expand_step(5, 3)
    assert np.count_nonzero(traffic.medium_N == Medium.FABRIC) == 3 * 8
    assert (traffic.bytes_N[traffic.medium_N == Medium.NONE] == 0).all()


def test_a_message_waits_for_its_ends_and_for_what_it_passes_on() -> None:
    """Two ranks: rows 0, 1 ready; then steps 0 and 1 of both; then done. Worked out by hand."""
    _, traffic = expand_step(2, 100)
    waits = [sorted(traffic.dependencies.of(row).tolist()) for row in range(len(traffic))]
    assert waits == [
        [],
        [],
        [0, 1],  # step 0, rank 0 to 1: both ready
        [0, 1],
        [1, 3],  # step 1, rank 0 to 1: the other ready, and step 0 from 1 to 0 arrived
        [0, 2],
        [0, 2, 4, 5],  # rank 0 done: its two messages sent, the last one to it arrived
        [1, 3, 4, 5],
    ]


def test_requests_carry_their_work_and_their_waits() -> None:
    """The second request of a rank becomes ready 7 ps after the first is done: rows 8 and 9 are the first's done."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    _, traffic = expand(two_requests(second_waits=True), placement, fabric, ExpansionSpec())
    assert traffic.delay_ps_N[:4].tolist() == [7, 7, 7, 7]
    assert traffic.delay_ps_N[4:].tolist() == [0] * (len(traffic) - 4)
    assert [traffic.dependencies.of(row).tolist() for row in range(4)] == [[], [], [8], [9]]
    assert traffic.operation_N[[2, 3, 8, 9]].tolist() == [2, 3, 0, 1]


def test_a_barrier_moves_nothing_and_waits_for_all() -> None:
    """Of no bytes, its messages cross nothing; each rank's done row still waits, in the end, for every ready row."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    trace = two_requests(second_waits=False)
    trace.operation_N[:] = Operation.BARRIER
    trace.bytes_N[:] = 0
    queue_pairs, traffic = expand(trace, placement, fabric, ExpansionSpec())
    assert len(queue_pairs) == 0
    assert set(traffic.medium_N.tolist()) == {Medium.NONE}
    assert {0, 1} <= set(traffic.dependencies.of(4).tolist()), "a message waits for both ranks to be ready"


def test_a_trace_without_requests_carries_nothing() -> None:
    """A job that never communicates is no error."""
    zeros = np.zeros(0, np.int64)
    trace = CommTrace(
        groups=((0, 1),),
        rank_N=zeros,
        operation_N=zeros,
        group_N=zeros,
        peer_N=zeros,
        bytes_N=zeros,
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=(),
        policy_N=(),
        tag_N=(),
        dependencies=Dependencies.none(0),
    )
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    queue_pairs, traffic = expand(trace, placement, fabric, ExpansionSpec())
    assert (len(queue_pairs), len(traffic)) == (0, 0)


def test_messages_take_queue_pairs_in_turn() -> None:
    """Three queue pairs a connection, two messages a step pair: the first takes 0, the second 1."""
    queue_pairs, traffic = expand_step(2, 100, options=ExpansionSpec(qps_per_connection=3))
    assert queue_pairs.source_nic_Q.tolist() == [0, 0, 0, 1, 1, 1]
    assert traffic.qp_N[traffic.medium_N == Medium.FABRIC].tolist() == [0, 3, 1, 4]


def test_two_queue_pairs_take_turns() -> None:
    """Six messages each way: three on each queue pair, one after another."""
    queue_pairs, traffic = expand_step(4, 400, options=ExpansionSpec(qps_per_connection=2))
    assert len(queue_pairs) == 8
    on_fabric = traffic.medium_N == Medium.FABRIC
    assert np.bincount(traffic.qp_N[on_fabric]).tolist() == [3] * 8


def test_messages_split_over_queue_pairs_move_the_same_bytes() -> None:
    """A chunk of 50 B over three queue pairs is 17, 17 and 16 B; whoever waits for it waits for all three."""
    options = ExpansionSpec(qps_per_connection=3, qp_use="split")
    _, traffic = expand_step(2, 100, options=options)
    first_message = slice(2, 5)
    assert traffic.bytes_N[first_message].tolist() == [17, 17, 16]
    assert traffic.qp_N[first_message].tolist() == [0, 1, 2]
    assert traffic.bytes_N.sum() == 200
    assert sorted(traffic.dependencies.of(11).tolist()) == [0, 2, 3, 4]


def test_a_thousand_ranks_expand() -> None:
    """128 rings of 8: 128 * 2 * 7 * 8 messages, and two rows for each of 1,024 requests."""
    layout = ParallelLayout(tp=8, dp=8, pp=16)
    fabric = star(128, 8)
    placement = place(layout, fabric, "contiguous", gpus_per_host=8)
    queue_pairs, traffic = expand(collective_step(layout, 10**6), placement, fabric, ExpansionSpec())
    assert len(traffic) == 128 * 2 * 7 * 8 + 2 * 1024
    assert len(queue_pairs) == 1024


def test_a_job_too_large_to_be_written_out_is_refused_at_once() -> None:
    """One ring of 12,288 ranks is 2 * 12,288 * 12,287 messages: tens of gigabytes, refused before any is made."""
    with pytest.raises(TraceError) as error:
        expand_step(12_288, 10**6)
    assert str(error.value) == (
        "communication trace: collectives of up to 301,965,312 messages in all\n"
        "  allowed: 30,000,000\n"
        "  next: take fewer steps or groups, smaller groups, fewer channels or larger slices"
    )


def test_an_operation_the_algorithm_has_no_way_for_goes_the_plain_way() -> None:
    """A ring has no all-to-all: each of two ranks sends the other its half of 100 B, directly."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    trace = two_requests(second_waits=False)
    trace.operation_N[2:] = Operation.ALL_TO_ALL
    _, traffic = expand(trace, placement, fabric, ExpansionSpec())
    second = (traffic.operation_N >= 2) & (traffic.medium_N == Medium.FABRIC)
    assert traffic.bytes_N[second].tolist() == [50, 50]


def test_sends_meet_receives() -> None:
    """Rank 0 sends 100 B to rank 1, which receives them and then sends them back: two messages, one after the other."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    trace = two_requests(second_waits=True)
    trace.operation_N[:] = [Operation.SEND, Operation.RECEIVE, Operation.RECEIVE, Operation.SEND]
    trace.peer_N[:] = [1, 0, 1, 0]
    queue_pairs, traffic = expand(trace, placement, fabric, ExpansionSpec())
    assert (queue_pairs.source_nic_Q.tolist(), queue_pairs.destination_nic_Q.tolist()) == ([0, 1], [1, 0])
    assert traffic.bytes_N[traffic.medium_N == Medium.FABRIC].tolist() == [100, 100]


def test_both_may_send_before_they_receive() -> None:
    """A message needs its sender alone: two ranks that first send and then receive do not wait for one another."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    trace = two_requests(second_waits=True)
    trace.operation_N[:] = [Operation.SEND, Operation.SEND, Operation.RECEIVE, Operation.RECEIVE]
    trace.peer_N[:] = [1, 0, 1, 0]
    _, traffic = expand(trace, placement, fabric, ExpansionSpec())
    messages = np.flatnonzero(traffic.medium_N == Medium.FABRIC)
    assert [traffic.dependencies.of(row).tolist() for row in messages.tolist()] == [[0], [1]]


def test_a_send_without_receive_is_named() -> None:
    """Rank 1 would wait for ever."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    trace = two_requests(second_waits=False)
    trace.operation_N[:] = Operation.SEND
    trace.operation_N[1] = Operation.RECEIVE
    trace.peer_N[:] = [1, 0, 1, 0]
    with pytest.raises(TraceError, match="2 sends from rank 0 to 1 and 1 receives"):
        expand(trace, placement, fabric, ExpansionSpec())


def test_channels_take_connections_and_rails_of_their_own() -> None:
    """Two hosts of four GPUs, four channels: each enters and leaves a host on a rail of its own, a quarter each."""
    queue_pairs, traffic = expand_step(8, 8000, gpus_per_host=4, options=ExpansionSpec(channels=4))
    ends = zip(queue_pairs.source_nic_Q.tolist(), queue_pairs.destination_nic_Q.tolist(), strict=True)
    assert sorted(ends) == [(0, 4), (1, 5), (2, 6), (3, 7), (4, 0), (5, 1), (6, 2), (7, 3)]
    wire = traffic.medium_N == Medium.FABRIC
    per_pair = np.bincount(traffic.qp_N[wire], weights=traffic.bytes_N[wire])
    assert np.ptp(per_pair) <= 14, "each is a quarter, within a byte a message"


def test_slices_cut_what_channels_carry() -> None:
    """Two ranks, 1,000 B: a chunk of 500 B in slices of at most 200 B is three messages where one was."""
    _, traffic = expand_step(2, 1000, options=ExpansionSpec(slice_bytes=200))
    assert np.count_nonzero(traffic.medium_N == Medium.FABRIC) == 4 * 3
    assert traffic.bytes_N.max() <= 200
    assert traffic.bytes_N.sum() == 2000


def test_channels_share_what_slices_cut() -> None:
    """Two ranks, 1,000 B, two channels: quarters of 250 B in slices of at most 130 B are two messages each."""
    _, traffic = expand_step(2, 1000, options=ExpansionSpec(channels=2, slice_bytes=130))
    assert np.count_nonzero(traffic.medium_N == Medium.FABRIC) == 4 * 2 * 2
    assert traffic.bytes_N.max() == 125


def test_a_channel_numbers_the_gpus_of_a_host_from_its_own_on() -> None:
    """Two hosts of three: channel c comes in at GPU c, and leaves behind the two others."""
    shape = GroupShape(num_members=6, local_size=3)
    schedule = over_channels(ring.all_gather(shape), Operation.ALL_GATHER, shape, num_channels=3, num_slices=1)
    crosses_M = schedule.sender_M // 3 != schedule.receiver_M // 3
    ends = zip(schedule.channel_M, schedule.sender_M % 3, schedule.receiver_M % 3, strict=True)
    assert {tuple(map(int, row)) for row, crosses in zip(ends, crosses_M, strict=True) if crosses} == {
        (0, 2, 0),
        (1, 0, 1),
        (2, 1, 2),
    }


@pytest.mark.parametrize("host_n", [[0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1, 0, 0]])
def test_a_group_that_lies_unevenly_on_its_hosts_has_one_member_on_each(host_n: list[int]) -> None:
    """Unequal numbers, and hosts that come again."""
    assert plans.local_size(range(len(host_n)), np.array(host_n)) == 1
    assert plans.local_size(range(4), np.array([0, 0, 1, 1])) == 2


def test_every_part_of_every_chunk_is_one_of_its_own() -> None:
    """Two chunks of two channels of two slices are parts 0 to 7 of the buffer; the first of 9 B has two bytes."""
    shape = GroupShape(num_members=2)
    schedule = over_channels(ring.all_reduce(shape), Operation.ALL_REDUCE, shape, num_channels=2, num_slices=2)
    assert schedule.part_K.tolist() == list(range(8))
    assert schedule.bytes_M(9)[schedule.step_M == 0].tolist() == [
        2 if 0 in schedule.chunks_of(message) else 1 for message in np.flatnonzero(schedule.step_M == 0).tolist()
    ]


@pytest.mark.parametrize("num_ranks", [3, 8])
def test_a_rank_without_place_is_named(num_ranks: int) -> None:
    """A trace of three or eight ranks on a placement of two."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    with pytest.raises(TraceError, match=f"rank {num_ranks - 1}, where 2 ranks are placed"):
        expand(collective_step(ParallelLayout(dp=num_ranks), 10), placement, fabric, ExpansionSpec())


def test_options_out_of_range_are_refused() -> None:
    """NCCL's limit of queue pairs is 128; a misspelt algorithm gets its nearest name."""
    with pytest.raises(InputError, match="qps_per_connection: 0\n  allowed: 1 to 128"):
        ExpansionSpec(qps_per_connection=0)
    with pytest.raises(InputError, match="did you mean 'ring'"):
        ExpansionSpec(algorithm="rings")


def test_options_meet_their_limits() -> None:
    """NCCL's 128 queue pairs and 64 channels, and eight priorities from 0."""
    most = ExpansionSpec(qps_per_connection=128, channels=64, priority=7, slice_bytes=1)
    assert (most.qps_per_connection, most.channels, most.priority, most.slice_bytes) == (128, 64, 7, 1)
    assert ExpansionSpec(priority=0).priority == 0
    refusals: tuple[tuple[dict[str, Any], str], ...] = (
        ({"qps_per_connection": 129}, "qps_per_connection: 129\n  allowed: 1 to 128"),
        ({"channels": 65}, "channels: 65\n  allowed: 1 to 64"),
        ({"channels": 0}, "channels: 0\n  allowed: 1 to 64"),
        ({"priority": 8}, "priority: 8\n  allowed: 0 to 7"),
        ({"priority": -1}, "priority: -1\n  allowed: 0 to 7"),
        ({"slice_bytes": 0}, "slice_bytes: 0 B\n  allowed: 1 B or more"),
    )
    for options, message in refusals:
        with pytest.raises(InputError) as refused:
            ExpansionSpec(**options)
        assert str(refused.value) == message


def test_slices_count_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks, two messages a slice and step: 5 slices of 100 B in a chunk of 500 B are 20 messages."""
    options = ExpansionSpec(slice_bytes=100)
    monkeypatch.setattr(plans, "MAX_MESSAGES", 20)
    expand_step(2, 1000, options=options)
    monkeypatch.setattr(plans, "MAX_MESSAGES", 19)
    with pytest.raises(TraceError, match="up to 20 messages in all"):
        expand_step(2, 1000, options=options)


def test_slices_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same 20 messages of one schedule, also where they would not be written out."""
    trace, host_R = collective_step(ParallelLayout(dp=2), 1000), np.arange(2)
    slicing = plans.Slicing(slice_bytes=100)
    monkeypatch.setattr(plans, "MAX_MESSAGES", 20)
    (plan,) = plans.make_plans(trace, host_R, ALGORITHMS["ring"], slicing, is_written_out=False)
    assert len(plan.schedule) == 20
    monkeypatch.setattr(plans, "MAX_MESSAGES", 19)
    with pytest.raises(TraceError, match="up to 20 messages in all"):
        plans.make_plans(trace, host_R, ALGORITHMS["ring"], slicing, is_written_out=False)


def test_only_what_is_written_out_counts_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two collectives of four messages: each alone where they are generated, eight where queue pairs take turns."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    monkeypatch.setattr(plans, "MAX_MESSAGES", 7)
    _, traffic = expand(two_requests(True), placement, fabric, ExpansionSpec(), written_out_rows=0)
    assert np.count_nonzero(traffic.written_out().bytes_N) == 8
    with pytest.raises(TraceError, match="up to 8 messages in all"):
        expand(two_requests(True), placement, fabric, ExpansionSpec(qps_per_connection=2), written_out_rows=0)


def test_data_have_by_default_the_priority_that_a_list_of_queues_begins_with() -> None:
    """A scenario that lists one priority and says nothing else carries its collectives there."""
    assert ExpansionSpec().priority == PriorityConfig().priority


def test_a_part_is_one_slice_at_least_and_1024_at_most() -> None:
    """Halves of 0, 400, 401 and a billion bytes in slices of 200 B."""
    slices = plans.Slicing(slice_bytes=200).num_slices(np.array([0, 400, 401, 10**9]), 2)
    assert slices.tolist() == [1, 1, 2, 1024]
