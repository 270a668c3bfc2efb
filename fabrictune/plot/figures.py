"""Figures of records: one function for each kind of chart on the HTML page.

`records` is one record or several; `labels` name them in the figure, by default with their own names. A record without
the table that a figure needs raises RecordError, a malformed one too.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabrictune.foundation.errors import Mistake, RecordError, require_one_of
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.units import NS_PER_US, RATE_UNITS
from fabrictune.plot import rendering
from fabrictune.reports.by_size import size_classes, slowdown_chart
from fabrictune.reports.calibration import TIMES, error_chart
from fabrictune.reports.charts import LineChart
from fabrictune.reports.collectives import MEASUREMENTS, MODEL, bandwidth_charts
from fabrictune.reports.completion import MIN_TAIL, completion_chart, longest_chart
from fabrictune.reports.congestion import queue_chart, thin
from fabrictune.reports.effective import WINDOWS, time_chart
from fabrictune.reports.flows import FLOW_SAMPLES, FlowTimeline, flow_charts
from fabrictune.reports.link_load import carried_load, offered_load
from fabrictune.reports.page import open_runs
from fabrictune.reports.pair_map import RDMA_TRANSFERS, PairMap, pair_maps
from fabrictune.reports.record_view import SAMPLES, Run
from fabrictune.reports.selection import Selection
from fabrictune.reports.startup import COSTS, STORMS, storm_chart
from fabrictune.reports.survival import INTERVALS, interval_chart
from fabrictune.reports.sweeps import OBJECTIVES, POINTS, sweep_charts
from fabrictune.reports.throughput import SENT, PortThroughput, throughput_charts
from fabrictune.reports.training import TRAINING, loss_chart
from fabrictune.reports.whatif import VARIANTS, whatif_charts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = RunRecord | Sequence[RunRecord]


class NothingToDrawError(RecordError):
    """Records lack what a figure is drawn of: `labels` are theirs."""

    def __init__(self, mistake: Mistake, labels: Sequence[str]) -> None:
        super().__init__(mistake)
        self.labels = tuple(labels)


def completion_times(records: Records, labels: Sequence[str] = ()) -> "Figure":
    """Return the cumulative distribution of flow completion times, one curve a record. Raises RecordError."""
    runs = _runs(records, labels, lambda run: run.finished is not None, "finished transfers")
    return _line_figure(completion_chart(runs))


def tail(records: Records, labels: Sequence[str] = ()) -> "Figure":
    """Return the share of transfers above each slowdown, else each completion time, one curve a record.

    Raises RecordError, where no record has 100 transfers too.
    """
    runs = _runs(records, labels, lambda run: run.finished is not None, "finished transfers")
    chart = longest_chart(runs)
    if chart is None:
        names = [run.label for run in runs]
        raise NothingToDrawError(Mistake(where=", ".join(names), found=f"fewer than {MIN_TAIL} transfers"), names)
    return _line_figure(chart)


def slowdowns(records: Records, labels: Sequence[str] = ()) -> "Figure":
    """Return slowdown by size of the transfer: p50, p95 and p99 of one record, p99 of each of several.

    Raises RecordError.
    """
    runs = _runs(records, labels, lambda run: run.finished is not None, "finished transfers")
    chart = slowdown_chart({run.label: size_classes(flows) for run in runs if (flows := run.flows) is not None})
    if chart is None:
        names = [run.label for run in runs]
        raise NothingToDrawError(Mistake(where=", ".join(names), found="no slowdowns of several sizes"), names)
    return _line_figure(chart)


def queues(record: RunRecord) -> "Figure":
    """Return the deepest sampled queues over time. Raises RecordError."""
    ((run, samples),) = _tables(record, (), SAMPLES, "samples of queues")
    return _line_figure(queue_chart(run, thin(run.label, samples)))


def throughput(record: RunRecord) -> "Figure":
    """Return what the sampled ports that sent most carried over time, with the mean of all. Raises RecordError."""
    ((run, sent),) = _tables(record, (), SENT, "samples of ports")
    sampled = PortThroughput.of(sent)
    if sampled is None:
        raise NothingToDrawError(Mistake(where=run.label, found="samples of a single instant"), [run.label])
    (chart,) = throughput_charts([(run, sampled)])
    return _line_figure(chart)


def flows(record: RunRecord) -> "Figure":
    """Return rate, window and round trip over time of the sampled queue pairs that the page draws.

    A quantity that is the same throughout is left out. Raises RecordError.
    """
    ((run, samples),) = _tables(record, (), FLOW_SAMPLES, "samples of queue pairs")
    timeline = FlowTimeline.of(run, samples)
    charts = [] if timeline is None else flow_charts([timeline])[0]
    if not charts:
        raise NothingToDrawError(Mistake(where=run.label, found="no sample of a queue pair that changes"), [run.label])
    figure, axes = rendering.new_figure(len(charts))
    for each, chart in zip(axes, charts, strict=True):
        rendering.draw_lines(each, chart)
        each.set_title(chart.caption, fontsize=rendering.FONT_POINTS)
    return figure


def link_loads(records: Records, labels: Sequence[str] = ()) -> "Figure":
    """Return the load of the links of each class, sorted: offered load where there is one, else utilization.

    Raises RecordError.
    """
    runs = _runs(records, labels, lambda run: bool(offered_load(run) or carried_load(run)), "loads of links")
    loads = [load for run in runs if (load := offered_load(run) or carried_load(run)) is not None]
    rows = [(load, name, ports) for load in loads for name, ports in load.fabric.link_classes().items()]
    top = max(1.0, *(float(load.load_P.max()) for load in loads))
    figure, axes = rendering.new_figure(len(rows), row_inches=1.4)
    for each, (load, name, ports) in zip(axes, rows, strict=True):
        title = f"{load.label}: {name}, {load.measure}"
        rendering.draw_sorted_bars(each, load.load_P[ports], title=title, top=top)
    return figure


def sweep(record: RunRecord) -> "Figure":
    """Return the points of a sweep at each objective over the first, with the Pareto front in colour and named.

    Raises RecordError.
    """
    ((run, points),) = _tables(record, (), POINTS, "points of a sweep")
    ((_, objectives),) = _tables(record, (), OBJECTIVES, "points of a sweep")
    charts = sweep_charts(run.label, points, objectives)
    figure, axes = rendering.new_figure(len(charts))
    for each, chart in zip(axes, charts, strict=True):
        rendering.draw_points(each, chart)
    rendering.draw_number_key(axes[-1], charts[-1])
    axes[0].set_title(charts[0].caption, fontsize=rendering.FONT_POINTS, wrap=True)
    return figure


def whatif(record: RunRecord) -> "Figure":
    """Return the step with its interval over each thing of a network whose values have an order.

    Raises RecordError.
    """
    ((run, variants),) = _tables(record, (), VARIANTS, "variants of a network")
    charts = whatif_charts(run.label, variants)
    if not charts:
        mistake = Mistake(where=run.label, found="no variants whose values have an order")
        raise NothingToDrawError(mistake, [run.label])
    figure, axes = rendering.new_figure(len(charts))
    for each, chart in zip(axes, charts, strict=True):
        rendering.draw_lines(each, chart)
        each.set_title(chart.caption, fontsize=rendering.FONT_POINTS)
    return figure


def survival(record: RunRecord) -> "Figure":
    """Return the effective time of a planned job over the work between two saves, with its interval.

    Raises RecordError.
    """
    ((run, intervals),) = _tables(record, (), INTERVALS, "intervals between saves")
    return _line_figure(interval_chart(run.label, intervals))


def effective_time(record: RunRecord) -> "Figure":
    """Return a job's time by part over the job, with its effective time. Raises RecordError."""
    ((run, windows),) = _tables(record, (), WINDOWS, "windows of a job's time")
    figure, (axes,) = rendering.new_figure()
    rendering.draw_stack(axes, time_chart(run.label, windows))
    return figure


def training_loss(records: Records, labels: Sequence[str] = ()) -> "Figure":
    """Return the loss over training steps, one curve a record. Raises RecordError."""
    tables = _tables(records, labels, TRAINING, "training steps")
    return _line_figure(loss_chart({run.label: table for run, table in tables}))


def bus_bandwidth(records: Records, labels: Sequence[str] = ()) -> "Figure":
    """Return bus bandwidth over message size, measured and modelled, one plot an operation. Raises RecordError."""
    runs = _runs(
        records,
        labels,
        lambda run: bool(run.table(MEASUREMENTS) or run.table(MODEL)),
        "measured or modelled collectives",
    )
    charts = bandwidth_charts(runs)
    figure, axes = rendering.new_figure(len(charts))
    for each, chart in zip(axes, charts, strict=True):
        rendering.draw_lines(each, chart)
        each.set_title(chart.caption, fontsize=rendering.FONT_POINTS)
    return figure


def fit_errors(record: RunRecord) -> "Figure":
    """Return the error of a fitted model over size, one curve a series. Raises RecordError."""
    ((run, times),) = _tables(record, (), TIMES, "fitted times")
    return _line_figure(error_chart(run.label, times))


def startup(record: RunRecord, cost: str = "wall_ns") -> "Figure":
    """Return what start-up costs over the number of ranks: "requests", "wall_ns" or "server_cpu_ns".

    Raises RecordError.
    """
    require_one_of(cost, tuple(COSTS), where="cost", what="cost", error=RecordError)
    ((run, storms),) = _tables(record, (), STORMS, "start-up storms")
    return _line_figure(storm_chart(run.label, storms, cost))


def pair_map(record: RunRecord) -> "Figure":
    """Return bandwidth or latency between each two hosts, one map for each case that was measured.

    Raises RecordError.
    """
    ((run, transfers),) = _tables(record, (), RDMA_TRANSFERS, "transfers between hosts")
    maps = list(pair_maps(run.label, transfers))
    figure, axes = rendering.new_figure(max(1, len(maps)))
    for each, pairs in zip(axes, maps, strict=False):
        unit, per_unit = ("us", NS_PER_US) if pairs.is_latency else ("Gbps", RATE_UNITS["Gbps"])
        rendering.draw_heat_map(figure, each, _matrix(pairs) / per_unit, pairs.hosts, unit=unit)
        each.set_title(pairs.title, fontsize=rendering.FONT_POINTS)
    return figure


def _matrix(pairs: PairMap) -> np.ndarray:
    """Return the values with senders as rows; nan where no pair was measured."""
    place = {host: index for index, host in enumerate(pairs.hosts)}
    matrix = np.full((len(place), len(place)), np.nan)
    for sender, receiver, value in zip(pairs.senders, pairs.receivers, pairs.values, strict=True):
        matrix[place[sender], place[receiver]] = value
    return matrix


def _line_figure(chart: LineChart) -> "Figure":
    figure, (axes,) = rendering.new_figure()
    rendering.draw_lines(axes, chart)
    return figure


def _tables(records: Records, labels: Sequence[str], selection: Selection, what: str) -> list[tuple[Run, Columns]]:
    """Return each record with its table; raises RecordError for one without rows in it."""
    runs = _runs(records, labels, lambda run: run.rows(selection) is not None, what)
    return [(run, table) for run in runs if (table := run.rows(selection)) is not None]


def _runs(records: Records, labels: Sequence[str], has_table: Callable[[Run], bool], what: str) -> list[Run]:
    """Return the records as the page reads them; raises RecordError for one without the tables needed."""
    runs = open_runs([records] if isinstance(records, RunRecord) else list(records), labels)
    lacking = [run.label for run in runs if not has_table(run)]
    if lacking or not runs:
        where = ", ".join(lacking) or "records"
        mistake = Mistake(where=where, found=f"no {what}", next_step="choose a record that has them")
        raise NothingToDrawError(mistake, lacking)
    return runs
