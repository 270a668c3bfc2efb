"""Connections, and messages in turn or in parts over their queue pairs, by hand."""

import numpy as np

from fabrictune.collectives.channels import over_channels
from fabrictune.collectives.connections import connect, cut, take_turns
from fabrictune.collectives.messages import Edges, edges_of
from fabrictune.collectives.request_matching import Batch
from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import ring
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Medium, Operation, TrafficTrace


def make_trace(num_ranks: int, num_groups: int) -> CommTrace:
    """Return a request of every rank in every group of all ranks."""
    num_requests = num_ranks * num_groups
    zero_N = np.zeros(num_requests, np.int64)
    return CommTrace(
        groups=(tuple(range(num_ranks)),) * num_groups,
        rank_N=np.arange(num_requests) % num_ranks,
        operation_N=zero_N + Operation.ALL_REDUCE,
        group_N=np.arange(num_requests) // num_ranks,
        peer_N=zero_N + UNKNOWN,
        bytes_N=zero_N + 8,
        compute_before_ps_N=zero_N,
        step_N=zero_N,
        axis_N=("dp",) * num_requests,
        policy_N=("none",) * num_requests,
        tag_N=("",) * num_requests,
        dependencies=Dependencies.none(num_requests),
    )


def test_edges_come_by_channel_sender_and_receiver() -> None:
    """A ring of three on two channels; each message lies on the edge of its ends."""
    shape = GroupShape(num_members=3)
    schedule = over_channels(ring.all_reduce(shape), Operation.ALL_REDUCE, shape, num_channels=2, num_slices=1)
    edges = edges_of(schedule)
    assert edges.channel_E.tolist() == [0, 0, 0, 1, 1, 1]
    assert edges.sender_E.tolist() == [0, 1, 2] * 2
    assert edges.receiver_E.tolist() == [1, 2, 0] * 2
    for of_edge, of_message in (
        (edges.channel_E, schedule.channel_M),
        (edges.sender_E, schedule.sender_M),
        (edges.receiver_E, schedule.receiver_M),
    ):
        np.testing.assert_array_equal(of_edge[edges.edge_M], of_message)


def test_connections_come_by_group_channel_source_and_destination() -> None:
    """Two groups of four ranks on two hosts. Rank 0 to 1 stays on its host, and an empty edge needs no connection."""
    edges = Edges(
        sender_E=np.array([0, 0, 0, 3, 1]),
        receiver_E=np.array([1, 2, 3, 0, 2]),
        channel_E=np.array([0, 0, 0, 1, 2]),
        edge_M=np.arange(5),
    )
    batch = Batch(
        operation=Operation.ALL_REDUCE,
        group_C=np.array([1, 0, 0]),
        bytes_C=np.full(3, 8),
        request_Cn=np.array([[4, 5, 6, 7], [0, 1, 2, 3], [0, 1, 2, 3]]),
    )
    bytes_CE = np.array([[9, 1, 0, 2, 3], [9, 4, 5, 6, 7], [9, 40, 50, 60, 70]])
    found = connect(make_trace(4, 2), np.array([0, 0, 1, 1]), [(batch, edges, bytes_CE)])
    assert list(zip(found.source_K.tolist(), found.destination_K.tolist(), found.bytes_K.tolist(), strict=True)) == [
        (0, 2, 44),
        (0, 3, 55),
        (3, 0, 66),
        (1, 2, 77),
        (0, 2, 1),
        (3, 0, 2),
        (1, 2, 3),
    ]
    (connection_CE,) = found.connection_CE
    assert connection_CE.tolist() == [[UNKNOWN, 4, UNKNOWN, 5, 6], [UNKNOWN, 0, 1, 2, 3], [UNKNOWN, 0, 1, 2, 3]]


def test_channels_of_one_part_are_kept_apart_beside_a_part_without_any() -> None:
    """A group of one rank has no edges, and comes first; the other's second channel is no other group's first."""
    trace = make_trace(2, 2)
    alone, pair = np.zeros(0, np.int64), np.array([0, 0])
    parts = []
    for sender_E, channel_E in ((alone, alone), (pair, np.array([0, 1]))):
        edges = Edges(sender_E=sender_E, receiver_E=sender_E + 1, channel_E=channel_E, edge_M=channel_E)
        batch = Batch(
            operation=Operation.ALL_REDUCE,
            group_C=np.array([0, 1]),
            bytes_C=np.full(2, 8),
            request_Cn=np.array([[0, 1], [2, 3]]),
        )
        parts.append((batch, edges, np.full((2, len(sender_E)), 8)))
    found = connect(trace, np.array([0, 1]), parts)
    assert found.bytes_K.tolist() == [8, 8, 8, 8]


def test_messages_of_a_connection_take_its_queue_pairs_in_turn() -> None:
    """Connection 0 has queue pairs 0 and 1, connection 1 has 2 and 3; a row without one has none."""
    connection_N = np.array([0, UNKNOWN, 1, 0, 0, 1])
    assert take_turns(connection_N, 2).tolist() == [0, UNKNOWN, 2, 1, 0, 3]


def test_a_message_is_cut_into_parts_that_differ_by_a_byte_at_most() -> None:
    """5 B in two, 1 B and 0 B in one part each; the last row waits for both parts of the first, and for the second."""
    traffic = TrafficTrace(
        source_N=np.array([3, 4, 5]),
        destination_N=np.array([6, 7, 8]),
        medium_N=np.array([Medium.FABRIC, Medium.FABRIC, Medium.NONE]),
        qp_N=np.array([0, 1, UNKNOWN]),
        bytes_N=np.array([5, 1, 0]),
        start_ps_N=np.array([10, 20, 30]),
        delay_ps_N=np.array([40, 50, 60]),
        operation_N=np.array([0, 0, 1]),
        dependencies=Dependencies(offset_N1=np.array([0, 0, 1, 3]), row_D=np.array([0, 0, 1])),
    )
    parts = cut(traffic, 2)
    assert parts.source_N.tolist() == [3, 3, 4, 5]
    assert parts.destination_N.tolist() == [6, 6, 7, 8]
    assert parts.bytes_N.tolist() == [3, 2, 1, 0]
    assert parts.qp_N.tolist() == [0, 0, 1, UNKNOWN]
    assert parts.start_ps_N.tolist() == [10, 10, 20, 30]
    assert parts.delay_ps_N.tolist() == [40, 40, 50, 60]
    assert [parts.dependencies.of(row).tolist() for row in range(4)] == [[], [], [0, 1], [0, 1, 2]]
