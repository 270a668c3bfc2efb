"""Flows: the same queue pairs and the same bytes as the messages written out, without the messages."""

import numpy as np
import pytest

from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.flow_volumes import expand_to_flows
from fabrictune.collectives.jobs import collective_step
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Medium, Operation
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.placement import place

FABRIC = build_clos(ClosSpec(num_hosts=8, hosts_per_tor_set=4, nics_per_host=4, tiers=2))


@pytest.mark.parametrize("operation", [Operation.ALL_REDUCE, Operation.BROADCAST, Operation.ALL_TO_ALL])
@pytest.mark.parametrize(
    "options",
    [
        ExpansionSpec(),
        ExpansionSpec(channels=4, slice_bytes=1000),
        ExpansionSpec(algorithm="hierarchical"),
        ExpansionSpec(qps_per_connection=3, qp_use="split"),
    ],
    ids=["ring", "channels", "hierarchical", "split"],
)
def test_flows_add_up_to_the_messages(operation: Operation, options: ExpansionSpec) -> None:
    """Every queue pair has the ends, number and bytes it has where each message is a transfer."""
    layout = ParallelLayout(tp=2, dp=16)
    placement = place(layout, FABRIC, "interleaved", gpus_per_host=4)
    trace = collective_step(layout, 100_003, operation=operation)
    queue_pairs, messages = expand(trace, placement, FABRIC, options)
    flow_pairs, flows = expand_to_flows(trace, placement, FABRIC, options)
    for name, column in vars(queue_pairs).items():
        assert np.array_equal(column, getattr(flow_pairs, name)), name
    on_fabric = messages.medium_N == Medium.FABRIC
    sums = np.bincount(messages.qp_N[on_fabric], messages.bytes_N[on_fabric], minlength=len(queue_pairs))
    spare = messages.bytes_N.size if options.qps_per_connection > 1 else 0  # rounding, a byte a message
    assert np.abs(sums - flows.bytes_N).max() <= spare


def test_twelve_thousand_ranks_are_summed_up_and_not_written_out() -> None:
    """64 rings of 192 are 4.7 million messages, and 12,288 flows of 2 * 191 / 192 of a buffer each."""
    layout = ParallelLayout(tp=8, pp=8, dp=192)
    fabric = build_clos(ClosSpec(num_hosts=1536, hosts_per_tor_set=64, nics_per_host=8, tiers=3))
    placement = place(layout, fabric, "contiguous", gpus_per_host=8)
    queue_pairs, flows = expand_to_flows(collective_step(layout, 192_000), placement, fabric, ExpansionSpec())
    assert len(queue_pairs) == len(flows) == 12_288
    assert set(flows.bytes_N.tolist()) == {2 * 191 * 1000}


def test_flows_share_a_connection_byte_by_byte() -> None:
    """1,001 B from rank 0 to 1 over two queue pairs: 501 and 500, on the fabric, of no request."""
    placement = place(ParallelLayout(dp=2), FABRIC, "contiguous", gpus_per_host=1)
    trace = collective_step(ParallelLayout(dp=2), 1001, operation=Operation.BROADCAST)
    options = ExpansionSpec(qps_per_connection=2)
    _, flows = expand_to_flows(trace, placement, FABRIC, options)
    assert flows.bytes_N.tolist() == [501, 500]
    assert flows.operation_N.tolist() == [UNKNOWN] * 2


@pytest.mark.parametrize("num_bytes", [1_000, 1_001])
def test_groups_that_share_ranks_are_sums_of_their_own(num_bytes: int) -> None:
    """Three collectives each of groups of 0 to 2 with three orders, all of one size: what the messages add up to."""
    groups = ((0, 1, 2), (0, 2, 1), (1, 0, 2))
    rank_N = np.tile(np.array(groups).ravel(), 3)
    zero_N = np.zeros(len(rank_N), np.int64)
    trace = CommTrace(
        groups=groups,
        rank_N=rank_N,
        operation_N=zero_N + Operation.ALL_REDUCE,
        group_N=np.tile(np.repeat(np.arange(3), 3), 3),
        peer_N=zero_N + UNKNOWN,
        bytes_N=zero_N + num_bytes,
        compute_before_ps_N=zero_N,
        step_N=zero_N,
        axis_N=("dp",) * len(rank_N),
        policy_N=("none",) * len(rank_N),
        tag_N=("",) * len(rank_N),
        dependencies=Dependencies.none(len(rank_N)),
    )
    placement = place(ParallelLayout(dp=3), FABRIC, "contiguous", gpus_per_host=1)
    _, messages = expand(trace, placement, FABRIC, ExpansionSpec())
    _, flows = expand_to_flows(trace, placement, FABRIC, ExpansionSpec())
    on_fabric = messages.medium_N == Medium.FABRIC
    assert flows.bytes_N.tolist() == np.bincount(messages.qp_N[on_fabric], messages.bytes_N[on_fabric]).tolist()


def test_a_trace_without_requests_has_no_flows() -> None:
    """A job that never communicates is no error."""
    layout = ParallelLayout(dp=1)
    placement = place(layout, FABRIC, "contiguous", gpus_per_host=4)
    trace: CommTrace = collective_step(layout, 1000)
    queue_pairs, flows = expand_to_flows(trace, placement, FABRIC, ExpansionSpec())
    assert (len(queue_pairs), len(flows)) == (0, 0)


def test_collectives_of_a_group_are_one_sum_however_many_they_are() -> None:
    """300,000 all-reduces of sizes of their own: 4 edges of 2 * 3/4 of each buffer, rounded to whole bytes a chunk."""
    num_steps = 300_000
    rank_N = np.repeat(np.arange(4), num_steps)
    bytes_N = np.tile(np.arange(num_steps), 4)
    steps = CommTrace(
        groups=((0, 1, 2, 3),),
        rank_N=rank_N,
        operation_N=np.full(4 * num_steps, int(Operation.ALL_REDUCE)),
        group_N=np.zeros(4 * num_steps, np.int64),
        peer_N=np.full(4 * num_steps, UNKNOWN),
        bytes_N=bytes_N,
        compute_before_ps_N=np.zeros(4 * num_steps, np.int64),
        step_N=np.zeros(4 * num_steps, np.int64),
        axis_N=("dp",) * (4 * num_steps),
        policy_N=("none",) * (4 * num_steps),
        tag_N=("",) * (4 * num_steps),
        dependencies=Dependencies.none(4 * num_steps),
    )
    placement = place(ParallelLayout(dp=4), FABRIC, "contiguous", gpus_per_host=1)
    _, flows = expand_to_flows(steps, placement, FABRIC, ExpansionSpec())
    total = int(np.arange(num_steps).sum())
    assert len(flows) == 4
    assert int(flows.bytes_N.sum()) == 6 * total
    assert np.abs(flows.bytes_N - 1.5 * total).max() <= 2 * num_steps


def test_broadcasts_from_two_roots_of_a_group_are_two_sums() -> None:
    """A broadcast's ring begins at its root, so that the edges of equal number join other ranks."""
    trace = CommTrace(
        groups=((0, 1, 2),),
        rank_N=np.array([0, 1, 2, 0, 1, 2]),
        operation_N=np.full(6, int(Operation.BROADCAST)),
        group_N=np.zeros(6, np.int64),
        peer_N=np.array([0, 0, 0, 1, 1, 1]),
        bytes_N=np.array([100] * 3 + [1000] * 3),
        compute_before_ps_N=np.zeros(6, np.int64),
        step_N=np.zeros(6, np.int64),
        axis_N=("dp",) * 6,
        policy_N=("none",) * 6,
        tag_N=("",) * 6,
        dependencies=Dependencies.none(6),
    )
    placement = place(ParallelLayout(dp=3), FABRIC, "contiguous", gpus_per_host=1)
    _, flows = expand_to_flows(trace, placement, FABRIC, ExpansionSpec())
    pairs = dict(
        zip(
            zip(flows.source_N.tolist(), flows.destination_N.tolist(), strict=True), flows.bytes_N.tolist(), strict=True
        )
    )
    nic = placement.nic_R.tolist()
    assert pairs == {(nic[0], nic[1]): 100, (nic[1], nic[2]): 1100, (nic[2], nic[0]): 1000}
