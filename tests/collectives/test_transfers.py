"""Transfers generated range by range are the transfers written out."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.jobs import collective_step
from fabrictune.foundation import row_ranges
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.generated_traces import GeneratedTrace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace, Dependencies, Operation, TrafficTrace, concatenate_traces
from fabrictune.topology.placement import place
from tests.collectives.test_expansion import star, two_requests

COLUMNS = ("source_N", "destination_N", "medium_N", "qp_N", "bytes_N", "start_ps_N", "delay_ps_N", "operation_N")
LAYOUT = ParallelLayout(tp=2, dp=8)
FIRST = 3 * LAYOUT.world_size  # row behind the requests; a ring's collective is 2 * 8 * 7 messages and 8 ends
INSIDE = [(FIRST, FIRST + 120), (FIRST + 1, FIRST + 250), (FIRST + 2, FIRST + 121)]
OPTIONS = {
    **{name: ExpansionSpec(algorithm=name) for name in ALGORITHMS},
    "channels": ExpansionSpec(channels=2, slice_bytes=100),
    "turns": ExpansionSpec(qps_per_connection=2),
    "split": ExpansionSpec(qps_per_connection=3, qp_use="split"),
}


def job(num_bytes: int) -> CommTrace:
    """Return two steps of all-reduces, of which the second waits, and an all-to-all within hosts."""
    first = collective_step(LAYOUT, num_bytes)
    steps = concatenate_traces([first, collective_step(LAYOUT, 2 * num_bytes)])
    offset_N1 = np.concatenate([np.zeros(len(first), np.int64), np.arange(len(first) + 1)])
    waiting = replace(steps, dependencies=Dependencies(offset_N1=offset_N1, row_D=np.arange(len(first))))
    return concatenate_traces([waiting, collective_step(LAYOUT, num_bytes, operation=Operation.ALL_TO_ALL, axis="tp")])


def expanded(trace: CommTrace, options: ExpansionSpec, **more: int) -> TrafficTrace:
    """Return the transfers of a job of four hosts with four GPUs each."""
    fabric = star(4, 4)
    return expand(trace, place(LAYOUT, fabric, "contiguous", gpus_per_host=4), fabric, options, **more)[1]


@pytest.mark.parametrize("num_bytes", [5, 8000])  # some messages of no bytes, and none
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_any_range_has_the_rows_of_the_whole(
    options: ExpansionSpec, num_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges within a collective, over several, and over requests and collectives."""
    whole = expanded(job(num_bytes), options)
    monkeypatch.setattr(row_ranges.ranges, "__defaults__", (100,))
    generated = expanded(job(num_bytes), options, written_out_rows=0)
    assert isinstance(generated, GeneratedTrace) == (options.qps_per_connection == 1)
    assert len(generated) == len(whole)
    edges = np.unique(np.random.default_rng(0).integers(0, len(whole), 9)).tolist()
    waiting = LAYOUT.world_size + 2, LAYOUT.world_size + 5  # requests, with others that wait before them
    for begin, end in [*zip([0, *edges], [*edges, len(whole)], strict=True), (0, len(whole)), (7, 7), waiting, *INSIDE]:
        for name in COLUMNS:
            np.testing.assert_array_equal(generated.column(name, begin, end), whole.column(name, begin, end), name)
        waits, expected = generated.waits(begin, end), whole.waits(begin, end)
        np.testing.assert_array_equal(waits.offset_N1, expected.offset_N1)
        np.testing.assert_array_equal(waits.row_D, expected.row_D)
    np.testing.assert_array_equal(generated.dependencies.row_D, whole.dependencies.row_D)
    assert generated.arrives_over_time == whole.arrives_over_time
    with pytest.raises(AttributeError):
        _ = getattr(generated, "colour")  # noqa: B009


def crossing(*, is_possible: bool) -> CommTrace:
    """Return two ranks that each send to the other; one, or each, only when it has received."""
    trace = two_requests(second_waits=False)
    trace.operation_N[:] = [Operation.SEND, Operation.RECEIVE, Operation.RECEIVE, Operation.SEND]
    trace.peer_N[:] = [1, 0, 1, 0]
    waits = [[], [0], [], [1]] if is_possible else [[2], [], [], [1]]
    return replace(trace, dependencies=Dependencies.from_lists(waits))


def test_what_waits_both_ways_is_written_out() -> None:
    """The receiver of a message waits for its send: a circle of the message alone, but not of its rows."""
    fabric = star(2)
    placement = place(ParallelLayout(dp=2), fabric, "contiguous", gpus_per_host=1)
    possible, options = crossing(is_possible=True), ExpansionSpec()
    _, traffic = expand(possible, placement, fabric, options, written_out_rows=0)
    assert not isinstance(traffic, GeneratedTrace)
    with pytest.raises(TraceError, match="wait for one another in a circle"):
        expand(crossing(is_possible=False), placement, fabric, options, written_out_rows=0)
