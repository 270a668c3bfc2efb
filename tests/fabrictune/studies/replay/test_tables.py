"""Replayed steps of small traces: exact times, a critical path without gaps, and a bound that no run is below."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.measures import measure_parts
from fabrictune.foundation.records import Finding, RunRecord
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.replay.summary import summarize_replays
from fabrictune.studies.replay.transfer_graph import Durations, TransferGraph
from fabrictune.studies.simulation import judge, run_engine, simulate

US = 1_000_000  # picoseconds
SCENARIO = """
name: replay
fabric: {{builder: clos, num_hosts: {num_hosts}, hosts_per_tor_set: 2, nics_per_host: {num_nics}, tiers: 2}}
traffic:
  workload: comm_trace
  file: step.parquet
  layout: {{dp: {num_ranks}}}
  expansion: {{algorithm: {algorithm}}}
"""


def write_scenario(
    folder: Path, rows: Sequence[TraceRow], *, num_ranks: int, num_nics: int = 1, algorithm: str = "ring"
) -> Path:
    """Return the scenario of a trace on hosts of as many NICs."""
    build_trace(rows).write(folder / "step.parquet")
    numbers = {"num_hosts": num_ranks // num_nics, "num_nics": num_nics, "num_ranks": num_ranks}
    path = folder / "replay.yaml"
    path.write_text(SCENARIO.format(algorithm=algorithm, **numbers))
    return path


def late_rank_step(folder: Path) -> RunRecord:
    """Return the run of an all-reduce that rank 1 comes to 30 us late, and of work on both ranks after it."""

    def row(rank: int, num_bytes: int, work_us: int, waits: tuple[int, ...] = ()) -> TraceRow:
        return TraceRow(
            rank=rank,
            operation=Operation.ALL_REDUCE,
            group=(0, 1),
            num_bytes=num_bytes,
            compute_before_ps=work_us * US,
            waits=waits,
            axis="dp",
        )

    rows = [row(0, 10**6, 100), row(0, 8, 50, (0,)), row(1, 10**6, 130), row(1, 8, 40, (2,))]
    return simulate(load_scenario(write_scenario(folder, rows, num_ranks=2)))


def test_a_late_rank_exposes_the_wait_of_the_other(tmp_path: Path) -> None:
    """Rank 0 works 150 us and waits from 100 us on, rank 1 works 170 us; both for the second, small one as well."""
    record = late_rank_step(tmp_path)
    transfers = record.tables["transfers"]
    issue_ps = transfers["finish_ps"][:4]
    done_ps = [int(transfers["finish_ps"][transfers["operation"] == row].max()) for row in range(4)]
    assert issue_ps.tolist() == [100 * US, done_ps[0] + 50 * US, 130 * US, done_ps[2] + 40 * US]
    (step,) = to_rows(record.tables["replayed_steps"])
    assert step["duration_ps"] == max(done_ps)
    assert step["work_ps"] == 160 * US
    ranks = to_rows(record.tables["replayed_ranks"])
    assert [row["work_ps"] for row in ranks] == [150 * US, 170 * US]
    assert [row["duration_ps"] - row["work_ps"] - row["exposed_ps"] for row in ranks] == [0, 0]
    (exposed,) = to_rows(record.tables["exposed_communication"])
    assert exposed["axis"] == "dp"
    assert exposed["rank"] == 0
    assert exposed["exposed_ps"] == round(np.mean([row["exposed_ps"] for row in ranks]))


def test_computation_alone_is_the_longest_chain_of_work(tmp_path: Path) -> None:
    """130 us of rank 1, then 50 us of rank 0, if no transfer takes time."""
    (step,) = to_rows(late_rank_step(tmp_path).tables["replayed_steps"])
    assert step["work_alone_ps"] == 180 * US
    assert step["work_alone_ps"] < step["lower_bound_ps"] <= step["duration_ps"]


def test_the_critical_path_has_no_gap(tmp_path: Path) -> None:
    """Rank 1's first work, the all-reduce, rank 0's work, and the small all-reduce: all of the step."""
    record = late_rank_step(tmp_path)
    rows = to_rows(record.tables["critical_path"])
    assert [(row["axis"], row["rank"]) for row in rows if row["axis"] == "work"] == [("work", 1), ("work", 0)]
    ends = [row["begin_ps"] + row["duration_ps"] for row in rows]
    assert [row["begin_ps"] for row in rows] == [0, *ends[:-1]]
    assert ends[-1] == to_rows(record.tables["replayed_steps"])[0]["duration_ps"]
    links = sum(row["duration_ps"] for row in to_rows(record.tables["critical_links"]))
    assert links == ends[-1] - 180 * US


def test_the_summary_says_it_in_a_few_lines(tmp_path: Path) -> None:
    """A row for the only step, and what the critical path consists of."""
    (replay,) = summarize_replays(late_rank_step(tmp_path))
    assert replay.headings == ("step", "time", "work", "exposed dp", "without network", "lower bound")
    assert len(replay.rows) == 1
    whole, ranks, links = replay.lines
    assert whole.startswith("critical path 2")
    assert ranks == "  most work: rank 1 130 us, rank 0 50 us"
    assert links.startswith("  most transfers: host")


def test_estimated_runs_have_steps_too(tmp_path: Path) -> None:
    """At max-min shares the engine writes no table of ports, and the critical path needs none."""
    late_rank_step(tmp_path)
    path = tmp_path / "replay.yaml"
    path.write_text(path.read_text() + "engine: {skip: fluid}\n")
    record = simulate(load_scenario(path))
    assert "ports" not in record.tables
    (step,) = to_rows(record.tables["replayed_steps"])
    assert step["duration_ps"] == sum(record.tables["critical_path"]["duration_ps"])


def test_unfinished_steps_have_no_time(tmp_path: Path) -> None:
    """The run ends before the first all-reduce: no tables, and a metric that is not known."""
    late_rank_step(tmp_path)
    path = tmp_path / "replay.yaml"
    path.write_text(path.read_text() + "engine: {time_limit: 110 us}\n")
    record = simulate(load_scenario(path))
    assert summarize_replays(record) == []
    assert np.isnan(METRICS["step_time"].measure(record))


def test_jobs_side_by_side_have_steps_of_their_own(tmp_path: Path) -> None:
    """Two copies of one job on hosts of their own, the second 50 us later: the same steps, each from its beginning."""
    alone = to_rows(late_rank_step(tmp_path).tables["replayed_steps"])
    job = "{workload: comm_trace, file: step.parquet, layout: {dp: 2}, hosts: free}"
    path = tmp_path / "two.yaml"
    path.write_text(
        "name: two\nfabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2}\n"
        f"traffic: {{workload: mix, parts: [{{name: a, traffic: {job}}}, {{name: b, start: 50 us, traffic: {job}}}]}}\n"
        "expect: [{metric: step_time, part: b, at_most: 1 ms}]\n"
    )
    record = simulate(load_scenario(path))
    rows = to_rows(record.tables["replayed_steps"])
    assert [row.pop("part") for row in rows] == ["a", "b"]
    assert rows == [*alone, *alone]
    assert [replay.part for replay in summarize_replays(record)] == ["a", "b"]
    assert measure_parts(record)["b"]["step_time"] == alone[0]["duration_ps"]
    assert not [finding for finding in record.findings if finding.id.startswith("expect.")]


def test_steps_slowed_by_contention_are_a_finding(tmp_path: Path) -> None:
    """Eight ranks exchange 8 MB under ToRs of two hosts, of whose 400 Gbps 200 Gbps go up.

    Two ranks alone share no link, and take what their transfers take.
    """
    ranks = tuple(range(8))
    rows = [TraceRow(rank=rank, operation=Operation.ALL_TO_ALL, group=ranks, num_bytes=8 * 10**6) for rank in ranks]
    path = write_scenario(tmp_path, rows, num_ranks=8)
    path.write_text(path.read_text().replace("tiers: 2", "tiers: 2, uplink_rate: 200 Gbps, downlink_split: 1"))
    (finding,) = contention(simulate(load_scenario(path)))
    assert finding.entity == "replayed trace"
    assert re.fullmatch(r"at most 1.05 times its lower bound, \d\S+ us", finding.expected)
    assert re.fullmatch(
        r"a step takes \d\S+ us, \d\.\d\d times as long; most transfers of the critical path on \S+ -> \S+ .* us",
        finding.actual,
    )
    (tmp_path / "two").mkdir()
    assert contention(late_rank_step(tmp_path / "two")) == []


def contention(record: RunRecord) -> list[Finding]:
    """Return the findings on the bound of steps, which every replay is checked against."""
    assert [check.rule for check in record.checks or ()].count("replay.step-above-bound") == 1
    return [finding for finding in record.findings if finding.id == "replay.step-above-bound"]


@pytest.mark.filterwarnings("ignore:expansion.pxn")  # a note of how messages change rails
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_no_transfer_is_faster_than_its_bound(tmp_path: Path, algorithm: str) -> None:
    """Two collectives of every kind at a time among eight ranks on four hosts, late by ranks of a seed."""
    random = np.random.default_rng(7)
    ranks = tuple(range(8))
    rows: list[TraceRow] = []
    kinds = (Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.ALL_TO_ALL, Operation.REDUCE_SCATTER)
    for rank in ranks:
        first = len(rows)
        for number, operation in enumerate((*kinds, Operation.BROADCAST, *kinds)):
            late_ps = int(random.integers(0, 20)) * US
            waits = (first + number - 2,) if number > 1 else ()
            rows.append(
                TraceRow(
                    rank=rank,
                    operation=operation,
                    group=ranks,
                    num_bytes=100_000 * (1 + number),
                    compute_before_ps=late_ps,
                    waits=waits,
                    peer=2 if operation == Operation.BROADCAST else UNKNOWN,
                )
            )
    path = write_scenario(tmp_path, rows, num_ranks=8, num_nics=2, algorithm=algorithm)
    compiled = compile_scenario(load_scenario(path))
    record = judge(compiled, run_engine(compiled))
    graph, traffic = TransferGraph(compiled.traffic), compiled.traffic
    bound_ps = graph.finishes(Durations.at_line_rate(compiled.network, traffic, compiled.config))
    finish_ps = record.tables["transfers"]["finish_ps"]
    assert (bound_ps <= finish_ps).all()
    assert bound_ps.max() > 0.5 * finish_ps.max()
    assert (graph.finishes(Durations.none(traffic)) <= bound_ps).all()
