"""Flows: the same queue pairs and the same bytes as the messages written out, without the messages."""

import numpy as np
import pytest

from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.flow_volumes import expand_to_flows
from fabrictune.collectives.jobs import collective_step
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace, Medium, Operation
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


def test_a_trace_without_requests_has_no_flows() -> None:
    """A job that never communicates is no error."""
    layout = ParallelLayout(dp=1)
    placement = place(layout, FABRIC, "contiguous", gpus_per_host=4)
    trace: CommTrace = collective_step(layout, 1000)
    queue_pairs, flows = expand_to_flows(trace, placement, FABRIC, ExpansionSpec())
    assert (len(queue_pairs), len(flows)) == (0, 0)
