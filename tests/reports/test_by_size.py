"""Slowdown by size: small transfers in a queue lose most, and each class has its own percentiles."""

from typing import Any

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.reports.by_size import SizeClass, draw_slowdowns, size_classes, slowdown_chart
from fabrictune.reports.completion import completion_section
from fabrictune.reports.record_view import open_run
from tests.reports.conftest import RecordMaker


def flows(sizes: Any, times: Any, alone: Any = 10) -> Columns:
    """Return transfers of these sizes and completion times, -1 never, and of times alone."""
    times = np.asarray(times)
    return {
        "qp": np.arange(len(times)),
        "source": np.zeros(len(times), np.int64),
        "destination": np.full(len(times), 2),
        "bytes": np.asarray(sizes),
        "ready_ps": np.zeros(len(times), np.int64),
        "finish_ps": times,
        "ideal_ps": np.broadcast_to(alone, times.shape),
    }


def test_each_of_a_few_sizes_is_a_class() -> None:
    """Two sizes: of the small ones the median is twice the time alone and p95 five times, the large one took 1.5."""
    classes = size_classes(flows([100, 100, 100, 4_000], [10, 20, 50, 15]))
    assert classes == [
        SizeClass(up_to_bytes=100, num_transfers=3, slowdowns=(2, 5, 5)),
        SizeClass(up_to_bytes=4_000, num_transfers=1, slowdowns=(1.5, 1.5, 1.5)),
    ]


def test_many_sizes_are_tenths_of_the_transfers() -> None:
    """A thousand sizes: ten classes of a hundred."""
    classes = size_classes(flows(np.arange(1, 1001), np.full(1000, 20)))
    assert [each.up_to_bytes for each in classes] == [100 * tenth for tenth in range(1, 11)]
    assert {each.num_transfers for each in classes} == {100}


def test_a_size_of_which_most_never_finished_has_no_point() -> None:
    """Of two small transfers one never finished: p50 is a circle, p95 and p99 are none, and the caption says why."""
    classes = {"run": size_classes(flows([1, 1, 2], [10, -1, 20]))}
    chart = slowdown_chart(classes)
    assert chart is not None
    assert chart.curves == {"p50": [(1, 1), (2, 2)], "p95": [(2, 2)], "p99": [(2, 2)]}
    assert chart.caption.endswith("Where so many transfers never finished there is none.")
    figure = draw_slowdowns(classes)
    assert figure is not None
    assert figure.table is not None
    assert [cell.text for cell in figure.table.rows[0]] == ["run", "1 B", "2", "1", "never", "never"]


def test_several_runs_are_compared_by_their_highest_percentile() -> None:
    """A curve a run on one scale; the numbers have all percentiles of all."""
    classes = {label: size_classes(flows([1, 2], [10, times])) for label, times in (("a", 20), ("b", 60))}
    chart = slowdown_chart(classes)
    assert chart is not None
    assert chart.curves == {"a": [(1, 1), (2, 2)], "b": [(1, 1), (2, 6)]}
    assert chart.up.name == "slowdown, p99"
    assert chart.caption.startswith("Slowdown by size, p99: ")


def test_one_size_or_unknown_times_alone_are_no_chart() -> None:
    """Nothing depends on a size that is the same for all; without the time alone there is no slowdown."""
    assert slowdown_chart({"run": size_classes(flows([5, 5], [10, 20]))}) is None
    assert slowdown_chart({"run": size_classes(flows([1, 2], [10, 20], alone=0))}) is None
    assert slowdown_chart({}) is None


def test_a_long_run_has_its_tail_of_slowdowns_on_the_page(make_record: RecordMaker) -> None:
    """100 transfers suffice; where one run does not know its times alone, all runs have the tail of their times."""
    known = open_run(make_record(tables={"transfers": flows([1] * 50 + [2] * 50, 10 + np.arange(100))}), "known")
    section = completion_section([known])
    assert section is not None
    assert [block.caption.partition(":")[0] for block in section.blocks] == [
        "CDF of flow completion times, all runs on one scale. Circles",
        "Tail of slowdowns",
        "Slowdown by size",
        "known",
    ]
    unknown = open_run(make_record(tables={"transfers": flows([1] * 100, 10 + np.arange(100), alone=0)}), "unknown")
    both = completion_section([known, unknown])
    assert both is not None
    assert both.blocks[1].caption.startswith("Tail of flow completion times. Circles: p95, p99.")
