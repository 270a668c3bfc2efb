"""Every indicator, with the arithmetic of the two-flow run done by hand (see conftest)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.kpi_table import format_kpi, kpi_table
from fabrictune.reports.kpis import Kpi, kpis
from fabrictune.reports.record_view import SHARED, open_run


def by_name(record: RunRecord) -> dict[str, Kpi]:
    return {kpi.name: kpi for kpi in kpis(record)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JCT", 200_000_000),  # ps: last finish 200 us less first ready 0
        ("Aggregate throughput", 80e9),  # 2 MB in 200 us = 16e6 bits / 200e-6 s
        ("p50 FCT", 100_000_000),  # the first of two
        ("p99 FCT", 200_000_000),  # the second: rank ceil(0.99 * 2) = 2
        ("p99.9 FCT", 200_000_000),
        ("JFI", 0.9),  # 80 and 40 Gbps: (80 + 40)^2 / (2 (6400 + 1600)) = 14400 / 16000
        ("Packet drop", 2000),  # 1 of 500 packets
        ("ECN mark ratio", 0.1),  # 50 marks on 500 packets
        ("Retransmit rate", 0.01),  # 5 of 500
        ("Highest offered load", 2.0),  # 200 Gbps onto 100
        ("MMR, offered load", 4.0),  # 200, 0, 0, 0 % on four ports between ToRs: 200 / 50
        ("Highest utilisation", 0.8),  # 2 MB of the 2.5 MB that 100 Gbps carries in 200 us
        ("MMR, utilisation", 4.0),
        ("PFC pause count", 3),
        ("PFC pause duration", 30_000_000),  # 15 us on each of two ports
        ("p95 queue depth", 80_000),  # the fourth of 0, 10, 40, 80 KB: rank ceil(0.95 * 4) = 4
        ("Peak queue depth", 90_000),
    ],
)
def test_each_indicator_of_two_flows_is_what_the_arithmetic_says(record: RunRecord, name: str, value: float) -> None:
    """The parameters carry the arithmetic."""
    assert by_name(record)[name].value == pytest.approx(value, rel=1e-12)


def test_what_bounded_skip_estimates_has_its_interval(record: RunRecord) -> None:
    """Of the JCT, 190 to 210 us; without one where flows' own times count, or the record lacks the columns."""
    times = record.tables["transfers"]
    bounds = {"finish_low_ps": times["finish_ps"] - 10**7, "finish_high_ps": times["finish_ps"] + 10**7}
    run = {**record.run, "skip": {"mode": "bounded", "bounded": {"spans": 1}}}
    lacking = replace(record, run=run)
    shown = by_name(replace(lacking, tables={**record.tables, "transfers": {**times, **bounds}}))
    assert shown["JCT"].formula.endswith("last byte; estimated by bounded skip, 95 %: 190 us to 210 us")
    unknown = "; estimated by bounded skip, without an interval"
    assert shown["p99 FCT"].formula.endswith(unknown)
    assert shown["Packet drop"].is_within is None
    assert by_name(lacking)["JCT"].formula.endswith(unknown)


def test_a_drop_is_out_of_the_drafts_bound_of_none(record: RunRecord) -> None:
    """2000 ppm against 0 ppm."""
    assert by_name(record)["Packet drop"].is_within is False


def test_jct_ratio_needs_the_ideal_time(make_record: Callable[..., RunRecord]) -> None:
    """200 us over an ideal of 160 us is 1.25, beyond the indicative 1.05; without a finite ideal there is none."""
    ratio = by_name(make_record(run={"ideal_ps": 160_000_000}))["JCT ratio"]
    assert (ratio.value, ratio.is_within) == (1.25, False)
    assert "JCT ratio" not in by_name(make_record())
    assert "JCT ratio" not in by_name(make_record(run={"ideal_ps": float("inf")}))


def test_bus_bandwidth_needs_the_collective(make_record: Callable[..., RunRecord]) -> None:
    """An all-reduce of 2 MB over 2 ranks (factor 1) in 200 us: 16e6 bits / 200e-6 s = 80 Gbps, below 90 % of 100."""
    collective = {"operation": "all_reduce", "bytes": 2_000_000, "busbw_factor": 1.0, "line_rate_bps": 100 * 10**9}
    bandwidth = by_name(make_record(run={"collective": collective}))["BusBW"]
    assert bandwidth.value == pytest.approx(80e9)
    assert bandwidth.is_within is False
    assert "BusBW" not in by_name(make_record(run={"collective": {"operation": "all_reduce"}}))


def test_what_depends_on_an_unfinished_transfer_is_never(make_record: Callable[..., RunRecord]) -> None:
    """Of two flows one never finished: so neither did the job, nor 99 % of flows; half of them took 100 us at most."""
    transfers = dict(make_record().tables["transfers"])
    transfers["finish_ps"] = np.array([100_000_000, -1])
    found = by_name(make_record(tables={"transfers": transfers}))
    assert format_kpi(found["JCT"]) == format_kpi(found["p99 FCT"]) == "never"
    assert found["p50 FCT"].value == 100_000_000


def test_missing_tables_leave_indicators_out_instead_of_zero(make_record: Callable[..., RunRecord]) -> None:
    """Without transfers and ports nothing was sent or paused as far as anyone knows: only offered load is left."""
    found = by_name(make_record(tables={"transfers": None, "ports": None, "samples": None}))
    assert set(found) == {"Highest offered load", "MMR, offered load"}


def test_transfers_off_the_fabric_are_no_flows(make_record: Callable[..., RunRecord]) -> None:
    """A transfer inside a host has no queue pair; it counts for the job's time and not for flow completion."""
    transfers = dict(make_record().tables["transfers"])
    transfers["qp"] = np.array([0, -1])
    found = by_name(make_record(tables={"transfers": transfers}))
    assert found["p99 FCT"].value == 100_000_000
    assert found["JCT"].value == 200_000_000


def test_expected_throughput_is_the_mean_share(make_record: Callable[..., RunRecord]) -> None:
    """Two queue pairs of which collisions leave one a half and one all: 75 %."""
    throughput = {"qp": np.arange(2), "throughput_fraction": np.array([0.5, 1.0])}
    assert by_name(make_record(tables={"throughput": throughput}))["Expected throughput"].value == 0.75


def test_an_overloaded_host_link_is_not_hidden_by_quiet_switches(make_record: Callable[..., RunRecord]) -> None:
    """Incast fills the receiver's own link and no other: 8 x 100 Gbps onto port 1, nothing between the ToRs, no MMR."""
    loads = dict(make_record().tables["loads"])
    loads["demand_bps"] = np.where(np.arange(12) == 1, 8 * 10**11, 0)
    found = by_name(make_record(tables={"loads": loads}))
    assert found["Highest offered load"].value == 8
    assert "MMR, offered load" not in found


def test_numbers_are_not_in_powers_of_ten() -> None:
    """67,780 ppm was "6.778e+04 ppm"; a ratio of 1,234 was "1.23e+03"."""
    shown = [format_metric(value, unit) for value, unit in ((67_780.4, "ppm"), (3.2, "ppm"), (1234.4, "ratio"))]
    assert shown == ["67,780 ppm", "3.2 ppm", "1,234"]


def test_what_metrics_read_is_checked_when_a_record_is_opened() -> None:
    """A text among the ideal times of a damaged record ended in a traceback."""
    read = {column for metric in METRICS.values() for column in metric.columns}
    assert read <= {f"{selection.table}.{column}" for selection in SHARED for column in selection.columns}


def test_a_flow_that_took_no_time_warns_of_nothing(make_record: Callable[..., RunRecord]) -> None:
    """Its rate is infinite; the page is no place for NumPy's warnings."""
    transfers = {**make_record().tables["transfers"], "ready_ps": np.array([100_000_000, 0])}
    assert by_name(make_record(tables={"transfers": transfers}))["Mean flow throughput"].value == np.inf


def test_a_small_ratio_is_not_nought(make_record: Callable[..., RunRecord]) -> None:
    """5,494 bytes over 1.831 MB are 0.003, and 0 over 90 KB is 0."""
    deep, shallow, none = (
        open_run(
            make_record(tables={"ports": {**make_record().tables["ports"], "max_queue_bytes": np.full(12, depth)}}), "r"
        )
        for depth in (1_831_000, 5_494, 0)
    )
    (row,) = [row for row in kpi_table([deep, shallow, none], "sim run").rows if row[0].text == "Peak queue depth"]
    assert [cell.text for cell in row[1:6]] == ["1.831 MB", "5.494 KB", "0.003", "0 B", "0"]


def test_a_bandwidth_without_a_line_rate_is_neither_within_nor_out_of_bounds(
    make_record: Callable[..., RunRecord],
) -> None:
    """Nobody said what the line rate is: a red figure would be a claim."""
    record = make_record(run={"collective": {"bytes": 1_000_000, "busbw_factor": 1.5}})
    (kpi,) = [kpi for kpi in kpis(record) if kpi.name == "BusBW"]
    assert kpi.is_within is None
