"""Figures for papers: what the page draws, as files that are the same each time."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import fabrictune as ft
from fabrictune.foundation.errors import RecordError
from fabrictune.validate.whatif_points import WhatIfPoint
from fabrictune.validate.whatif_record import whatif_record

SCENARIOS = Path(__file__).parents[3] / "scenarios"
RUN = {
    "name": "small",
    "fabric": {"builder": "fat_tree", "radix": 4},
    "traffic": {"workload": "permutation", "message": "256 KB"},
    "law": "dcqcn",
    "probe": {"interval": "2 us", "ports": "all", "all_flows": True},
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> ft.RunRecord:
    """A run with samples of queues."""
    path = tmp_path_factory.mktemp("small") / "small.yaml"
    path.write_text(json.dumps(RUN))
    return ft.simulate(path)


def test_completion_times_are_the_pages_curves(record: ft.RunRecord) -> None:
    """One curve a record, rising to 100 %, on the axis and in the unit of the page."""
    figure = ft.plot.completion_times([record, record], labels=["one", "two"])
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["one", "two"]
    assert np.max(axes.lines[0].get_ydata()) == 100
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("flow completion time, us", "transfers completed, %")
    finish_ps = record.tables["transfers"]["finish_ps"] - record.tables["transfers"]["ready_ps"]
    assert np.max(axes.lines[0].get_xdata()) == pytest.approx(finish_ps.max() / 1e6)


def test_many_curves_have_their_names_below(record: ft.RunRecord, tmp_path: Path) -> None:
    """Beyond six a figure had no key at all: eight laws, and nobody knew which was which; forty still leave a plot."""
    for count in (8, 40):
        labels = [f"law {index}" for index in range(count)]
        figure = ft.plot.completion_times([record] * count, labels=labels)
        ft.plot.save(figure, tmp_path / "many.png")
        (axes,) = figure.axes
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == labels
        assert legend.get_window_extent().y1 < axes.get_window_extent().y0
        assert axes.get_window_extent().height > 100


def test_queues_and_loads_are_drawn_from_a_run(record: ft.RunRecord) -> None:
    """The deepest queue of the samples is the highest point; a plot of loads for each class of links."""
    (axes,) = ft.plot.queues(record).axes
    deepest = record.tables["samples"]["queue_bytes"].max()
    assert max(np.max(line.get_ydata()) for line in axes.lines) == pytest.approx(deepest / 1000)
    analysis = ft.analyze(SCENARIOS / "demo-interleaved.yaml")
    titles = [axes.get_title() for axes in ft.plot.link_loads(analysis).axes]
    assert titles
    assert all("offered load" in title for title in titles)


def test_rates_over_time_are_the_pages_curves(record: ft.RunRecord) -> None:
    """Throughput on one plot; each quantity of flows that changes on one of its own, all over the same time."""
    (ports,) = ft.plot.throughput(record).axes
    assert (len(ports.lines), ports.get_ylabel()) == (4, "throughput, Gbps")
    flows = ft.plot.flows(record).axes
    assert [axes.get_ylabel() for axes in flows] == ["round trip, us"], "no rate is cut in so short a run"
    assert [len(axes.lines) for axes in flows] == [4]


def test_the_tail_and_slowdown_by_size_are_the_pages(record: ft.RunRecord) -> None:
    """Transfers of six sizes take 1 to 6 times as long as alone; 16 transfers of one size have neither figure."""
    size = np.repeat(np.arange(1, 7) * 1000, 20)
    alone_ps = np.full(len(size), 1_000_000)
    transfers = {"qp": np.arange(len(size)), "bytes": size, "ready_ps": 0 * size, "finish_ps": size * 1000}
    transfers |= {"source": 0 * size, "destination": 0 * size + 1, "ideal_ps": alone_ps}
    sized = ft.RunRecord(kind="sim run", run={"name": "sized"}, tables={"transfers": transfers})
    (tail,) = ft.plot.tail(sized).axes
    assert (tail.get_yscale(), tail.get_xlabel()) == ("log", "slowdown")
    (by_size,) = ft.plot.slowdowns(sized).axes
    assert [line.get_label() for line in by_size.lines] == ["p50", "p95", "p99"]
    assert all(np.array_equal(line.get_ydata(), [1, 2, 3, 4, 5, 6]) for line in by_size.lines)
    with pytest.raises(RecordError, match="fewer than 100 transfers"):
        ft.plot.tail(record)
    with pytest.raises(RecordError, match="no slowdowns of several sizes"):
        ft.plot.slowdowns(record)


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_figure_is_the_same_file_each_time(record: ft.RunRecord, tmp_path: Path, ending: str) -> None:
    """No date, no random id: figures can stand in a repository."""
    files = [ft.plot.save(ft.plot.completion_times(record), tmp_path / f"{name}.{ending}") for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()
    if ending == "png":
        assert struct.unpack(">4sII", files[0].read_bytes()[12:24]) == (b"IHDR", 1050, 720)  # 3.5 x 2.4 in, 300 dpi


def test_what_cannot_be_drawn_or_written_says_why(record: ft.RunRecord, tmp_path: Path) -> None:
    """A record without the table, an ending without a format, a folder that is not there."""
    with pytest.raises(ft.FabrictuneError, match=r"^small: no training steps\n  next: choose a record that has them"):
        ft.plot.training_loss(record)
    figure = ft.plot.completion_times(record)
    with pytest.raises(ft.InputError, match="unknown file ending"):
        ft.plot.save(figure, tmp_path / "figure.gif")
    with pytest.raises(ft.InputError, match="cannot be written"):
        ft.plot.save(figure, tmp_path / "nowhere" / "figure.png")


def test_variants_of_a_network_are_drawn_where_they_have_an_order() -> None:
    """Two rates in one plot with both ends of the interval; laws have no order, and the job as it is no value."""
    rows = [("as it is", 0.0), ("NIC rate", 1e11), ("NIC rate", 2e11), ("law", 0.0)]
    points = [
        WhatIfPoint(
            family=family,
            value="",
            amount=amount,
            step_ps=3e9,
            step_low_ps=2e9,
            step_high_ps=4e9,
            change_fraction=0.0,
            change_low_fraction=0.0,
            change_high_fraction=0.0,
            is_base=False,
        )
        for family, amount in rows
    ]
    (axes,) = ft.plot.whatif(whatif_record({"name": "job"}, points, [], [], [])).axes
    assert axes.get_title() == "job: step by NIC rate."
    assert [line.get_label() for line in axes.lines] == ["step", "lower end", "upper end"]
    with pytest.raises(RecordError, match="no variants whose values have an order"):
        ft.plot.whatif(whatif_record({"name": "job"}, points[:1], [], [], []))


@pytest.mark.parametrize(
    "objectives", [["makespan"], ["makespan", "ecn_marks"], ["makespan", "ecn_marks", "queue.max"]]
)
def test_a_sweep_is_drawn_with_its_front(tmp_path: Path, objectives: list[str]) -> None:
    """One objective over the point's number, or each further one over the first; points are named below."""
    (tmp_path / "small.yaml").write_text(json.dumps(RUN))
    (tmp_path / "sweep.yaml").write_text(
        json.dumps(
            {
                "name": "s",
                "scenario": "small.yaml",
                "vary": [{"key": "traffic.message", "values": ["64 KB", "256 KB"]}],
                "seeds": 1,
                "objectives": [{"metric": metric} for metric in objectives],
            }
        )
    )
    drawn = ft.plot.sweep(ft.sweep(tmp_path / "sweep.yaml", tmp_path / "out")).axes
    assert len(drawn) == max(1, len(objectives) - 1)
    assert "Pareto-optimal. One seed: this front is unfounded." in drawn[0].get_title()
    assert [sum(np.size(line.get_xdata()) for line in axes.lines) for axes in drawn] == [2] * len(drawn)
    key = drawn[-1].get_legend()
    assert key is not None
    assert {text.get_text()[2:] for text in key.get_texts()} == {"64 KB", "256 KB"}


def test_a_value_of_zero_is_left_out_of_a_logarithmic_figure() -> None:
    """Saves at every step have no interval: matplotlib would warn, and the axis would not be logarithmic."""
    intervals = {
        "interval_ns": np.array([0, 10**9, 10**11]),
        **{f"effective_fraction{end}": np.array([0.5, 0.6, 0.7]) for end in ("", "_low", "_high")},
    }
    record = ft.RunRecord(kind="train survive", run={"name": "job"}, tables={"survival_intervals": intervals})
    (axes,) = ft.plot.survival(record).axes
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "work between saves, without 3 points at or below 0"
    assert [len(np.asarray(line.get_xdata())) for line in axes.lines] == [2, 2, 2]
