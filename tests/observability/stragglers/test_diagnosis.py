"""Stragglers of simulated jobs: found, named, placed, and worth what their removal gains."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.studies.planted_stragglers.jobs import MS, Disturbance, simulate
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import Operation
from fabrictune.observability.stragglers.diagnosis import Cause, Diagnosis, diagnose
from fabrictune.observability.stragglers.heat_map import heat_map
from fabrictune.observability.stragglers.record import make_stragglers_record
from fabrictune.reports.page import build_page
from tests.observability.span_folders import SMALL, slow_job


def planted(**changes: object) -> Diagnosis:
    disturbance = Disturbance.none(SMALL)
    for name, (place, value) in changes.items():  # type: ignore[misc]
        getattr(disturbance, name)[place] = value  # type: ignore[has-type]
    return diagnose(simulate(SMALL, disturbance, seed=1))


def test_a_clean_job_has_no_stragglers() -> None:
    assert planted().stragglers == ()


def test_a_replay_of_what_was_seen_takes_what_was_seen() -> None:
    """The mean step of the replay is that of the spans, to rounding."""
    spans = slow_job()
    found = diagnose(spans)
    whole = spans.where((spans.kind_N == SpanKind.STEP) & (spans.step_N > 0))
    seen_ns = (whole.end_ns_N.max() - whole.start_ns_N.max(where=whole.step_N == 1, initial=0)) / 5
    assert found.replayed_step_ns == pytest.approx(seen_ns, rel=1e-3)


def test_a_slow_rank_is_found_and_its_gain_is_that_of_a_job_without_it() -> None:
    """Rank 11 is replica 3 of stage 1; the same job without its 10 % is the truth."""
    (found,) = diagnose(slow_job()).stragglers
    assert (found.cause, found.ranks, found.pattern) == ("slow work", (11,), "same")
    assert found.excess_fraction == pytest.approx(0.1, abs=0.02)
    slow, clean = diagnose(slow_job()), planted()
    measured = 1 - clean.replayed_step_ns / slow.replayed_step_ns
    assert found.gain_fraction == pytest.approx(measured, rel=0.2)
    last = {arrivals.last_rank for arrivals in slow.arrivals if arrivals.axis == "dp" and arrivals.pattern == "same"}
    assert last == {3, 11}  # its replica is last in both stages' sums


@pytest.mark.parametrize(
    ("change", "cause", "ranks"),
    [
        ({"link_DP": ((5, 1), 3.0)}, "slow link", (13,)),
        ({"loading_SDP": ((slice(None), 5, 1), 40 * MS)}, "data loading", (13,)),
        ({"clock_DP": ((5, 1), -9 * MS)}, "wrong clock", (13,)),
        ({"collection_SDP": ((2, 5, 1), 60 * MS)}, "garbage collection", (13,)),
    ],
)
def test_other_causes_are_found_alone(change: dict[str, object], cause: Cause, ranks: tuple[int, ...]) -> None:
    (found,) = planted(**change).stragglers
    assert (found.cause, found.ranks) == (cause, ranks)


def test_a_rank_whose_large_sums_end_late_has_no_wrong_clock() -> None:
    """As where its link is slow; its small ones end with those of the others."""
    spans = simulate(SMALL, Disturbance.none(SMALL), seed=1)
    is_large = (spans.operation_N == Operation.REDUCE_SCATTER) | (spans.operation_N == Operation.ALL_GATHER)
    late_N = np.where((spans.rank_N == 13) & (spans.kind_N == SpanKind.REQUEST) & is_large, 20 * MS, 0)
    found = diagnose(replace(spans, end_ns_N=spans.end_ns_N + late_N))
    assert "wrong clock" not in [one.cause for one in found.stragglers]


def test_of_two_ranks_that_only_have_each_other_the_slower_group_tells() -> None:
    """Without collectives either may have the slow link, and both are named."""
    disturbance = Disturbance.none(SMALL)
    disturbance.link_DP[5, 1] = 3.0
    spans = simulate(SMALL, disturbance, seed=1)
    is_collective = (spans.kind_N == SpanKind.REQUEST) & (np.array(spans.axis_N) == "dp")
    (alone,), (pair,) = diagnose(spans).stragglers, diagnose(spans.where(~is_collective)).stragglers
    assert (alone.cause, alone.ranks) == ("slow link", (13,))
    assert (pair.cause, pair.ranks) == ("slow link", (5, 13))


@pytest.mark.parametrize("bytes_of_last_stage", [1.0, 1.02])
def test_a_slow_links_gain_is_that_of_a_job_without_it(bytes_of_last_stage: float) -> None:
    """Also where each stage has a size of its own, so that all sums of that size cross the slow link."""
    disturbance = Disturbance.none(SMALL)
    disturbance.link_DP[5, 1] = 4.0

    def job(disturbance: Disturbance) -> Diagnosis:
        spans = simulate(SMALL, disturbance, seed=1)
        is_last = (np.array(spans.axis_N) == "dp") & (spans.rank_N >= SMALL.dp)
        num_bytes = np.where(is_last, np.round(spans.bytes_N * bytes_of_last_stage), spans.bytes_N)
        return diagnose(replace(spans, bytes_N=num_bytes.astype(np.int64)))

    slow, clean = job(disturbance), job(Disturbance.none(SMALL))
    (found,) = slow.stragglers
    measured = 1 - clean.replayed_step_ns / slow.replayed_step_ns
    assert found.gain_fraction == pytest.approx(measured, rel=0.2)


def test_collections_on_one_rank_after_another_are_the_jobs() -> None:
    steps = np.arange(SMALL.num_steps)
    (found,) = planted(collection_SDP=((steps, steps, steps % 2), 60 * MS)).stragglers
    assert (found.cause, found.ranks, found.pattern) == ("garbage collection", (), "rotating")


def test_a_rank_that_is_slow_for_some_steps_passes() -> None:
    (found,) = planted(work_SDP=((slice(3, 6), 5, 1), 1.4), link_DP=((0, 0), 1.0)).stragglers
    assert (found.cause, found.ranks) == ("slow work", (13,))


def test_a_clock_that_is_off_is_moved_before_arrivals_are_looked_at() -> None:
    found = planted(clock_DP=((5, 1), 20 * MS))
    assert found.stragglers[0].offset_ns == pytest.approx(20 * MS, rel=0.01)
    assert all(arrivals.pattern == "none" for arrivals in found.arrivals)


def test_the_heat_map_has_each_kind_by_machine_and_place() -> None:
    cells = heat_map(diagnose(slow_job()))
    kinds = dict.fromkeys(cell.kind for cell in cells)
    requests = ["dp all-gather", "dp all-reduce", "dp reduce-scatter", "pp message"]  # of two there are no last ones
    assert [kind for kind in kinds if kind != "pp all-reduce"] == ["forward", "backward", "data loading", *requests]
    hottest = max((cell for cell in cells if cell.kind == "backward"), key=lambda cell: cell.ratio)
    assert (hottest.host, hottest.place) == ("node0011", 1)
    assert hottest.ratio == pytest.approx(1.1, abs=0.02)


def test_a_finding_says_who_is_slow_and_what_it_costs() -> None:
    record = make_stragglers_record(diagnose(slow_job()), name="job", started=0.0)
    (finding,) = record.findings
    assert finding.entity == "rank 11 on node0011"
    gain = float(record.tables["stragglers"]["gain_fraction"][0])
    excess = float(record.tables["stragglers"]["excess_fraction"][0])
    assert finding.actual == (
        f"own work {excess:.1%} above its peers', in 100% of the steps; "
        f"without it steps are {gain:.1%} shorter (replayed)"
    )
    assert [check.result.value for check in record.checks or ()].count("passed") == 4


def test_ranks_without_spans_are_counted() -> None:
    spans = slow_job()
    found = diagnose(spans.where(spans.rank_N != 0))
    assert "1 of 16 ranks have no spans; their requests are not joined" in found.notes


def test_too_few_steps_are_refused() -> None:
    spans: Spans = slow_job()
    with pytest.raises(TraceError, match=r"spans: 1 steps that all ranks have whole, the first one left out"):
        diagnose(spans.where(spans.step_N < 2))


def test_requests_that_nobody_else_has_are_left_out() -> None:
    """Group 40 does not exist for others: sequence numbers of one rank are shifted."""
    spans = slow_job()
    shifted = replace(spans, sequence_N=np.where(spans.rank_N == 2, spans.sequence_N + 1000, spans.sequence_N))
    assert diagnose(shifted).joined.num_requests < diagnose(spans).joined.num_requests


def test_waits_for_data_are_in_the_heat_map_the_outcome_and_on_the_page() -> None:
    """Rank 13 waits 40 ms for data in each step of about 190 ms, its seven peers not at all."""
    found = planted(loading_SDP=((slice(None), 5, 1), 40 * MS))
    cells = {cell.host: cell.ratio for cell in heat_map(found) if cell.kind == "data loading" and cell.place == 1}
    share = 40 * MS / found.step_ns
    assert max(cells.values()) == pytest.approx(1 + share, rel=0.05)
    assert sorted(cells.values())[-2] == pytest.approx(1.0)
    record = make_stragglers_record(found, name="starved", started=0.0)
    outcome = record.run["outcome"]
    assert outcome["most_loading_rank"] == 13
    assert outcome["most_loading_fraction"] == pytest.approx(share, rel=0.05)
    assert outcome["loading_fraction"] < 0.001
    assert "data loading" in build_page([record], title="starved")


def test_a_job_without_requests_is_looked_at() -> None:
    """One rank alone has none; what rests on requests is said to be unknown."""
    spans = slow_job()
    found = diagnose(spans.where(spans.kind_N != SpanKind.REQUEST))
    assert "no request joins ranks: who arrives last, links and gains are not known" in found.notes
    assert [one.ranks for one in found.stragglers] == [(11,)]
