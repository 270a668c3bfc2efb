"""Pages of several runs say by how much results change, and how sure that is."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.reports.blocks import Table
from fabrictune.reports.changes import MAX_ROWS, changes_section
from fabrictune.reports.page import build_page, open_runs
from fabrictune.reports.repetitions import repetitions_of
from fabrictune.reports.samples import samples_of
from fabrictune.reports.verdict import make_verdict
from tests.reports.conftest import two_flow_tables

Maker = Callable[..., RunRecord]


def table_of(records: Sequence[RunRecord], labels: Sequence[str]) -> Table:
    section = changes_section(open_runs(records, labels))
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    return table


def rows_of(table: Table) -> dict[str, list[str]]:
    """Return the cells behind each measure."""
    cells = [[str(cell.text) + (f" ({cell.tone})" if cell.tone else "") for cell in row] for row in table.rows]
    return {measure: rest for measure, *rest in cells}


def flows(times_ps: Sequence[int], destination: int = 2) -> Columns:
    """Return transfers that take these times."""
    num, table = len(times_ps), two_flow_tables()["transfers"]
    return {
        **{name: np.repeat(column[:1], num) for name, column in table.items()},
        "transfer": np.arange(num),
        "qp": np.arange(num),
        "destination": np.full(num, destination),
        "finish_ps": np.array(times_ps),
    }


def test_flows_between_the_same_nics_are_pairs(make_record: Maker) -> None:
    """Each of four flows takes 10 us longer, 4 % of their mean of 250 us.

    Off 4 % they are by 6, 2, -2 and -6 us: a deviation of 5.16 us, an error of 2.58 us of the mean or 1.03 %, and 3.182
    times that, Student's t, on either side.
    """
    first = make_record(tables={"transfers": flows([100_000_000, 200_000_000, 300_000_000, 400_000_000])})
    second = make_record(tables={"transfers": flows([110_000_000, 210_000_000, 310_000_000, 410_000_000])})
    table = table_of([first, second], ["a", "b"])
    assert table.caption == "sim run: against a, over 4 flows, paired"
    assert table.headings == ("Measure", "a", "b", "Change", "95 % interval")
    assert rows_of(table)["Mean FCT"] == ["250 us", "260 us", "+4.0 % (worse)", "+0.7 % to +7.3 %"]


def test_flows_of_other_traffic_are_not_pairs(make_record: Maker) -> None:
    """To another NIC: the same means, but their spread counts, and the change may be chance: no colour."""
    times = [100_000_000, 200_000_000, 300_000_000, 400_000_000]
    first, second = (make_record(tables={"transfers": flows(times, destination)}) for destination in (2, 3))
    table = table_of([first, second], ["a", "b"])
    assert table.caption == "sim run: against a, over 4 and 4 flows"
    *_, change, interval = rows_of(table)["Mean FCT"]
    assert change == "+0.0 %"
    assert interval.startswith("-")


def test_rows_of_several_runs_name_them_and_what_they_are_made_from(make_record: Maker) -> None:
    """The third run has other flows than the first."""
    times = [100_000_000, 200_000_000, 300_000_000, 400_000_000]
    records = [make_record(tables={"transfers": flows(times, destination)}) for destination in (2, 2, 3)]
    table = table_of(records, ["a", "b", "c"])
    assert table.headings == ("Measure", "a", "Run", "Its value", "Change", "95 % interval", "Made from")
    shown = [[str(cell.text) for cell in row] for row in table.rows]
    assert [(row[2], row[6]) for row in shown] == [("b", "4 flows, paired"), ("c", "4 and 4 flows")]


def test_what_has_no_interval_is_named_with_the_reason(make_record: Maker) -> None:
    """Three flows have no p99 of which ten are beyond; the JCT is one number of a run."""
    records = [make_record(tables={"transfers": flows([1000, 2000, last])}) for last in (3000, 4000)]
    left_out = table_of(records, ["a", "b"]).left_out
    assert left_out.startswith(
        "No interval for p50 FCT, p99 FCT (zero before, too few values, or one that never ended), nor for JCT, "
    )
    assert left_out.endswith("(one number of a run each). Runs of each scenario under three seeds or more give one.")


def test_two_flows_have_no_interval_at_all(make_record: Maker) -> None:
    """One sentence in place of a table."""
    table = table_of([make_record(), make_record()], ["a", "b"])
    assert not table.rows
    assert table.caption.startswith("sim run: No interval for Mean FCT, p50 FCT, p99 FCT (zero before")


def seeded(make_record: Maker, law: str, seed: int, finish_ps: int) -> RunRecord:
    run = {"scenario": f"law: {law}\n", "seed": seed}
    return make_record(run=run, tables={"transfers": flows([finish_ps // 2, finish_ps])})


def test_scenarios_under_three_seeds_are_compared_seed_by_seed(make_record: Maker) -> None:
    """JCTs of 100, 110, 120 us against 90, 99, 108 us: 10 % less under each seed, however the runs are ordered."""
    times = {
        ("none", 1): 100,
        ("none", 2): 110,
        ("none", 3): 120,
        ("dcqcn", 3): 108,
        ("dcqcn", 1): 90,
        ("dcqcn", 2): 99,
    }
    records = [seeded(make_record, law, seed, 10**6 * time_us) for (law, seed), time_us in times.items()]
    table = table_of(records, list("abcdef"))
    assert table.headings[1] == "a, b, c"
    assert table.caption == "sim run: against a, b, c, over 3 seeds, paired"
    assert rows_of(table)["JCT"] == ["110 us", "99 us", "-10.0 % (better)", "no spread"]
    assert verdict(records).startswith("a, b, c take 1.11 times as long as d, e, f, over seeds.")


def verdict(records: Sequence[RunRecord]) -> str:
    return make_verdict(open_runs(records, list("abcdef")[: len(records)])).sentence


def test_the_verdict_of_scenarios_under_several_seeds_has_the_interval(make_record: Maker) -> None:
    """Other seeds of each: means of 110 and 132 us, deviations of 10 and 12: 1.20 times, and not surely longer.

    The error of the ratio is sqrt(1.2² 100 / 3 + 144 / 3) / 110 = 0.0891, Student's t of 4 degrees of freedom 2.776.
    """
    times = [("none", 1, 100), ("none", 2, 110), ("none", 3, 120), ("dcqcn", 4, 120), ("dcqcn", 5, 132)]
    records = [seeded(make_record, law, seed, 10**6 * time_us) for law, seed, time_us in (*times, ("dcqcn", 6, 144))]
    assert verdict(records).startswith(
        "d, e, f take 1.20 (95 % interval 0.95 to 1.45) times as long as a, b, c, over seeds. It may be chance."
    )


def test_runs_that_differ_in_their_seed_alone_are_not_called_a_comparison(make_record: Maker) -> None:
    """Three seeds of one scenario: the verdict says so, and there is nothing to compare."""
    records = [seeded(make_record, "none", seed, 10**6 * (100 + seed)) for seed in (1, 2, 3)]
    assert verdict(records).startswith("c takes 1.02 times as long as a; only their seeds differ.")
    assert changes_section(open_runs(records, list("abc"))) is None


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param({"none": (1, 2, 3), "dcqcn": (1, 2)}, id="two seeds of one"),
        pytest.param({"none": (1, 2, 3), "dcqcn": (1, 1, 2)}, id="a seed twice"),
    ],
)
def test_too_few_seeds_are_no_repetitions(make_record: Maker, seeds: dict[str, tuple[int, ...]]) -> None:
    """Each run is then compared for itself."""
    records = [seeded(make_record, law, seed, 10**8) for law, own in seeds.items() for seed in own]
    assert repetitions_of(open_runs(records, list("abcdef")[: len(records)])) == []


def bench(durations_ns: Sequence[int]) -> RunRecord:
    num = len(durations_ns)
    cases = {"operation": np.array(["all_reduce"]), "is_in_place": np.array([1]), "size_bytes": np.array([1_000_000])}
    rest = ("mean_ns", "algorithm_bandwidth_bps", "bus_bandwidth_bps", "num_wrong")
    return RunRecord(
        kind="coll bench",
        run={},
        tables={
            "measurements": {**cases, "num_ranks": np.array([8]), **{name: np.ones(1) for name in rest}},
            "iterations": {
                "case": np.zeros(num, int),
                "iteration": np.arange(num),
                "duration_ns": np.array(durations_ns),
                "skew_ns": np.zeros(num, int),
                "last_rank": np.zeros(num, int),
            },
        },
    )


def test_iterations_of_a_bench_have_a_bootstrapped_median() -> None:
    """Twenty iterations each, 1.00 to 1.19 us against twice that: twice, and surely so."""
    first, second = bench(range(1000, 1200, 10)), bench(range(2000, 2400, 20))
    table = table_of([first, second], ["a", "b"])
    assert table.caption == "coll bench: against a, over 20 and 20 iterations"
    assert rows_of(table)["all_reduce, in place, 8 ranks, 1 MB: median time"][2] == "+100.0 % (worse)"


def test_steps_of_a_training_are_without_the_first(make_record: Maker) -> None:
    """The first step warms up: a median of 20 others."""
    columns = ("loss", "gradient_norm", "learning_rate", "loss_scale", "is_skipped", "tokens_per_s", "mfu_fraction")
    exposed = {f"exposed_{axis}_ns": np.zeros(21, int) for axis in ("dp", "pp", "tp")}
    steps = {"step": np.arange(21), **{name: np.ones(21) for name in columns}, **exposed}
    steps["is_skipped"] = np.zeros(21, int)
    elapsed_ns = np.array([10**9, *range(1000, 1020)])
    record = RunRecord(kind="train run", run={}, tables={"training": {**steps, "elapsed_ns": elapsed_ns}})
    (run,) = open_runs([record], ["a"])
    sample = samples_of(run)["Median step time"]
    assert sample.value == 1_009_000
    assert len(sample.values) == 20


def test_estimated_times_have_no_sample(make_record: Maker) -> None:
    """Flows that were taken at their mean rates do not scatter as real ones."""
    record = make_record(run={"skip": {"fluid": {"makespan_factors": [0.9, 1.1]}}})
    assert samples_of(open_runs([record], ["a"])[0]) == {}


def test_many_rows_are_bounded_and_counted(make_record: Maker) -> None:
    """The mean FCT of 70 runs against the first: 64 rows and five more."""
    records = [make_record(tables={"transfers": flows([1000, 2000, 3000])})] * (MAX_ROWS + 6)
    table = table_of(records, [f"r{number}" for number in range(len(records))])
    assert len(table.rows) == MAX_ROWS
    assert table.left_out.startswith("5 rows more. No interval for ")


def test_the_page_has_the_section_and_still_draws_the_tables(make_record: Maker) -> None:
    """The numbers made from a table are not the table: iterations are listed among the other tables."""
    html = build_page([bench(range(1000, 1200, 10))] * 2, title="page")
    assert '<section id="changes">' in html
    assert "iterations, 20 rows" in html
