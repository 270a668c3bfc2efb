"""Rates over time: what ports carried, and what congestion control allowed to the queue pairs that matter."""

import numpy as np
import pytest

from fabrictune.foundation.records import Columns
from fabrictune.reports.flows import MAX_STRETCHES, UNLIMITED, FlowTimeline, flow_charts
from fabrictune.reports.rates import rates_section
from fabrictune.reports.record_view import open_run
from fabrictune.reports.throughput import MAX_STEPS, SENT, PortThroughput, throughput_charts
from tests.reports.conftest import RecordMaker

INSTANTS_PS = np.arange(5) * 50_000_000  # 0 to 200 us


def flow_samples(num_flows: int = 2) -> Columns:
    """Return five samples of each queue pair: its number is the Gbps that its rate falls by at each sample."""
    qp, instant = np.divmod(np.arange(5 * num_flows), 5)
    return {
        "time_ps": INSTANTS_PS[instant],
        "qp": qp,
        "rate_bps": 10**11 - qp * instant * 10**9,
        "cwnd_bytes": np.full(len(qp), UNLIMITED),
        "rtt_ps": 10**6 * (1 + instant),
    }


def parallel_transfers(num_flows: int) -> Columns:
    """Return a transfer of each queue pair, ready at 0; queue pair 3 finishes last, then 1, the others together."""
    finish_ps = np.full(num_flows, 100_000_000)
    finish_ps[[3, 1]] = (200_000_000, 150_000_000)
    return {
        "qp": np.arange(num_flows),
        "source": np.zeros(num_flows, np.int64),
        "destination": np.full(num_flows, 2),
        "bytes": np.full(num_flows, 1_000_000),
        "ready_ps": np.zeros(num_flows, np.int64),
        "finish_ps": finish_ps,
    }


def test_throughput_is_a_step_between_two_samples(make_record: RecordMaker) -> None:
    """Port 8 sends 1 MB in 100 us, 80 Gbps, port 0 half of it; the mean of both is 60 Gbps."""
    record = make_record()
    run = open_run(record, "run")
    throughput = PortThroughput.of(run.rows(SENT) or {})
    assert throughput is not None
    (chart,) = throughput_charts([(run, throughput)])
    assert chart.curves == {
        "tor0:swp3 \u2192 tor1:swp3": [(0, 8e10), (10**8, 8e10)],
        "h0:eth0 \u2192 tor0:swp1": [(0, 4e10), (10**8, 4e10)],
        "mean of 2 sampled ports": [(0, 6e10), (10**8, 6e10)],
    }
    assert chart.caption == (
        "run: throughput over time of the sampled ports that sent most (100 Gbps), headers included. A step is the "
        "mean of 100 us; a packet counts when it begins."
    )


def test_long_steps_lose_no_byte() -> None:
    """10,000 instants of one port, 1 to 4 bytes between two of them: the means times their steps are all it sent."""
    tx_bytes = np.cumsum(1 + np.arange(10_000) % 4)
    throughput = PortThroughput.of(
        {"time_ps": np.arange(10_000) * 10**6, "port": np.zeros(10_000), "tx_bytes": tx_bytes}
    )
    assert throughput is not None
    assert len(throughput.edge_ps_E) == MAX_STEPS
    sent_bytes = throughput.rate_bps_KE @ np.diff(throughput.edge_ps_E) / 8e12
    assert sent_bytes == pytest.approx([tx_bytes[-1] - tx_bytes[0]])


def test_ports_need_not_be_sampled_together() -> None:
    """Port 0 sends 10 bytes from 0 to 2 us, port 1 30 bytes from 1 to 3 us: 5, 20 and 15 bytes in each us of both."""
    us = 10**6
    sent = {
        "time_ps": np.array([0, 1, 2, 3]) * us,
        "port": np.array([0, 1, 0, 1]),
        "tx_bytes": np.array([0, 0, 10, 30]),
    }
    throughput = PortThroughput.of(sent)
    assert throughput is not None
    assert throughput.port_K == (1, 0)
    assert (throughput.mean_bps_E / 8e6 * 2).tolist() == pytest.approx([5, 20, 15])


def test_samples_of_one_instant_have_no_throughput(make_record: RecordMaker) -> None:
    """There is no time to divide by."""
    samples = {name: column[:2] for name, column in make_record().tables["samples"].items()}
    assert rates_section([open_run(make_record(tables={"samples": samples}), "run")]) is None


def test_the_last_and_the_most_swinging_queue_pairs_are_drawn(make_record: RecordMaker) -> None:
    """Ten queue pairs: 3 and 1 finish last; of the others 9 and 8 lose most, 18 and 16 Gbps of 100 until they end."""
    tables = {"flow_samples": flow_samples(10), "transfers": parallel_transfers(10), "samples": None}
    run = open_run(make_record(tables=tables), "run")
    timeline = FlowTimeline.of(run, tables["flow_samples"] or {})
    assert timeline is not None
    assert [flow.qp for flow in timeline.flows] == [3, 1, 9, 8]
    assert timeline.flows[0].name == "h0:eth0 \u2192 h2:eth0, queue pair 3"
    assert timeline.caption == (
        "run: allowed rate and round trip over time. 4 of 10 sampled queue pairs: the 2 that finish last and, of the "
        "others, the 2 whose allowed rate swings most. The law sets no congestion window."
    )
    rate, round_trip = flow_charts([timeline])[0]
    assert (rate.up.unit, round_trip.up.unit) == ("bps", "ps")
    assert list(rate.curves.values())[2] == [(0, 10**11), (50_000_000, 91 * 10**9), (100_000_000, 82 * 10**9)], (
        "what is sampled after its last byte is no rate of it"
    )


def test_a_queue_pair_that_no_sample_met_is_counted(make_record: RecordMaker) -> None:
    """Both were sampled at 0 and 50 us; queue pair 1 sends from 60 to 70 us alone."""
    samples = {name: column[[0, 1, 5, 6]] for name, column in flow_samples().items()}
    transfers = {**make_record().tables["transfers"], "ready_ps": np.array([0, 60_000_000])}
    transfers["finish_ps"] = np.array([100_000_000, 70_000_000])
    run = open_run(make_record(tables={"flow_samples": samples, "transfers": transfers}), "run")
    timeline = FlowTimeline.of(run, samples)
    assert timeline is not None
    assert timeline.caption == (
        "run: round trip over time. The one sampled queue pair. 1 more had nothing to send at any sample. The allowed "
        "rate is 100 Gbps throughout. The law sets no congestion window."
    )


def test_an_unfinished_queue_pair_is_the_slowest(make_record: RecordMaker) -> None:
    """It never finished, so all its samples count, and it is named first."""
    transfers = {**make_record().tables["transfers"], "finish_ps": np.array([100_000_000, -1])}
    run = open_run(make_record(tables={"flow_samples": flow_samples(), "transfers": transfers}), "run")
    section = rates_section([run])
    assert section is not None
    numbers = section.blocks[1].table  # type: ignore[union-attr]  # a figure
    assert numbers is not None
    assert [[cell.text for cell in row[1:]] for row in numbers.rows] == [
        ["never", "98 Gbps (96 Gbps to 100 Gbps)", "\u2013", "3 us (1 us to 5 us)"],
        ["100 us", "100 Gbps (100 Gbps to 100 Gbps)", "\u2013", "2 us (1 us to 3 us)"],
    ]


def test_a_swing_of_one_sample_is_drawn(make_record: RecordMaker) -> None:
    """One low rate among 10,000 samples: at most two points a stretch, and it is one of them."""
    rate_bps = np.full(10_000, 10**11)
    rate_bps[7_777] = 10**6
    column = np.zeros(10_000, np.int64)
    samples = {"time_ps": np.arange(10_000), "qp": column, "rate_bps": rate_bps, "cwnd_bytes": column, "rtt_ps": column}
    timeline = FlowTimeline.of(open_run(make_record(tables={"transfers": None}), "run"), samples)
    assert timeline is not None
    ((rate,),) = flow_charts([timeline])
    (points,) = rate.curves.values()
    assert len(points) == MAX_STRETCHES + 1
    assert (7_777, 10**6) in points


def test_a_window_is_drawn_from_where_there_is_one(make_record: RecordMaker) -> None:
    """A law without a window until its first acknowledgement: 10^18 bytes at 0 are no point, and no end of a scale."""
    samples = {**flow_samples(1), "cwnd_bytes": np.array([UNLIMITED, 40_000, 30_000, 40_000, 40_000])}
    timeline = FlowTimeline.of(open_run(make_record(tables={"transfers": None}), "run"), samples)
    assert timeline is not None
    window, _ = flow_charts([timeline])[0]
    (points,) = window.curves.values()
    assert points[:2] == [(50_000_000, 40_000), (100_000_000, 30_000)]
    assert (len(points), window.up.high) == (4, 42_000)


def test_all_runs_are_on_one_scale(make_record: RecordMaker) -> None:
    """A run that ended earlier ends earlier on the axis, and its curves are as high as in the other's figure."""
    samples = flow_samples()
    shorter = {name: column[samples["time_ps"] <= 10**8] for name, column in samples.items()}
    runs = [open_run(make_record(tables={"flow_samples": table}), "run") for table in (samples, shorter)]
    timelines = [made for run in runs if (made := FlowTimeline.of(run, run.record.tables["flow_samples"])) is not None]
    long, short = flow_charts(timelines)
    assert [chart.across for chart in long] == [chart.across for chart in short]
    assert [chart.up for chart in long] == [chart.up for chart in short]
    assert max(time for points in short[0].curves.values() for time, _ in points) == 10**8


def test_curves_over_time_share_their_clock_and_bands(make_record: RecordMaker) -> None:
    """Throughput and flows follow the crosshair of the other plots, and a fault is a band in both."""
    faults = {
        "description": np.array(["switch_down tor1"], object),
        "begin_ps": np.array([10**7]),
        "end_ps": np.array([-1]),
    }
    goodputs = {f"goodput_{when}_bps": np.array([-1]) for when in ("before", "during", "after")}
    record = make_record(tables={"flow_samples": flow_samples(), "faults": {**faults, **goodputs}})
    section = rates_section([open_run(record, "run")])
    assert section is not None
    for block in section.blocks:
        drawing = str(block.drawing)  # type: ignore[union-attr]  # a figure
        assert drawing.count('data-clock="time"') == 1
        assert drawing.count("fault-span") == 1
