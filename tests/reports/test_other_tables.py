"""What no section draws is on the page all the same: every table by its schema, every file by its name."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.schema import TableSchema, integer_column, number_column, text_column
from fabrictune.reports.blocks import MISSING
from fabrictune.reports.other_tables import MAX_COLUMNS, MAX_ROWS, MAX_TEXT
from fabrictune.reports.page import build_page, write_page

MakeRecord = Callable[..., RunRecord]

TOY = TableSchema(
    name="toasts",
    row="a slice",
    kinds=("kitchen toast",),
    columns=(
        integer_column("slice", "number of the slice"),
        number_column("browned_ns", "time in the toaster"),
        text_column("verdict", "what the eater said"),
    ),
)


def toast(directory: Path) -> Path:
    """The writer of a new kind of record: one table."""
    columns = {
        "slice": np.arange(2),
        "browned_ns": np.array([1.5e9, -1.0]),
        "verdict": np.array(["crisp", "never toasted"]),
    }
    return RunRecord(kind="kitchen toast", run={"name": "breakfast"}, tables={"toasts": columns}).write(directory)


def section_of(html: str, anchor: str = "tables") -> str:
    """Return the markup of a section, "" where the page has none."""
    found = re.search(rf'<section id="{anchor}">.*?</section>', html, flags=re.DOTALL)
    return found[0] if found else ""


def anchors(html: str) -> list[str]:
    return re.findall(r'<section id="(\w+)">', html)


def cells_of(html: str) -> list[list[str]]:
    """Return the text of the cells of every row of the section."""
    rows = re.findall(r"<tr[^>]*>(<th scope=.row.*?)</tr>", section_of(html))
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def other_page(kind: str = "sim run", **tables: Any) -> str:
    return build_page([RunRecord(kind=kind, run={"name": "run"}, tables=tables)], title="page")


def test_a_new_kind_of_record_is_a_writer_and_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is needed for its rows to be on the page, with units, and hints of what columns mean."""
    monkeypatch.setitem(TABLES, TOY.name, TOY)
    html = write_page([toast(tmp_path / "breakfast")]).read_text(encoding="utf-8")
    assert "breakfast: toasts, 2 rows; a row is a slice" in html
    assert cells_of(html) == [["0", "1.5 s", "crisp"], ["1", MISSING, "never toasted"]]
    assert '<th scope="col" class="number" title="time in the toaster (ns)">browned_ns</th>' in html


@pytest.mark.parametrize("name", TABLES)
def test_no_table_of_the_catalog_is_silent(name: str) -> None:
    """A record with one row of one table alone, and its fabric, has a section that shows it."""
    schema = TABLES[name]
    values = {"int64": np.zeros(1, np.int64), "float64": np.full(1, 0.5), "string": np.array(["words"])}
    row = {column.name.replace("*", "key"): values[column.type] for column in schema.columns}
    if name == "fabric":
        row = {**row, "rate_bps": np.ones(1, np.int64)}
    html = other_page(schema.kinds[0], **{name: row})
    assert set(anchors(html)) - {"findings", "provenance", "kpis"}


def test_what_a_section_draws_is_not_shown_twice(make_record: MakeRecord) -> None:
    """Every table of the two flows has its section."""
    assert "tables" not in anchors(build_page([make_record()], title="page"))


def test_fits_without_a_scenario_are_shown() -> None:
    """`coll compare` without --scenario writes fits alone, and the page was empty."""
    fits = {
        "operation": np.array(["all_reduce"]),
        "is_in_place": np.array([1]),
        "num_ranks": np.array([16]),
        "num_sizes": np.array([9]),
        "alpha_ns": np.array([28_400.0]),
        "busbw_bps": np.array([1.43e12]),
        "worst_error_fraction": np.array([0.0312]),
    }
    html = other_page("coll compare", fits=fits)
    assert cells_of(html) == [["all_reduce", "yes", "16", "9", "28.4 us", "1.43 Tbps", "0.0312"]]


def test_a_long_table_is_folded_with_its_true_count() -> None:
    """Twelve of 5,000 rows, closed until asked for."""
    aborts = {name: np.arange(5000) for name in ("qp", "time_ps")}
    html = section_of(other_page(aborts=aborts))
    assert "<details><summary>run: aborts, 5,000 rows; a row is a queue pair that ran out of retries" in html
    assert html.count('<tr><th scope="row"') == MAX_ROWS == 12
    assert "4,988 rows more in table “aborts” of the record." in html


def test_numbers_of_ports_are_named(make_record: MakeRecord) -> None:
    """Port 8 is the first link from tor0 to tor1; a port that is no port has no name."""
    queues = {"port": np.array([8, -1]), "priority": np.array([3, 3]), "tx_bytes": np.array([2_000_000, 0])}
    html = build_page([make_record(tables={"queues": queues})], title="page")
    assert cells_of(html) == [["tor0:swp3", "3", "2 MB"], [MISSING, "3", "0 B"]]


def test_codes_and_flags_and_infinity_are_words() -> None:
    """A trial's status 12 is "retry exceeded"; what is no number has a dash."""
    trials = {"status": np.array([12, 7]), "timeout": np.array([14, 14]), "cut_ns": np.array([-1, 2000])}
    assert cells_of(other_page("rdma timers measure", trials=trials)) == [
        ["retry exceeded", "14", MISSING],
        ["7", "14", "2 us"],
    ]
    training = {"technique": np.array(["zero"] * 2), "loss": np.array([np.nan, np.inf]), "step": np.array([1, 2])}
    assert cells_of(other_page("train ablate", ablation_trials=training)) == [
        ["zero", MISSING, "1"],
        ["zero", "inf", "2"],
    ]


def test_empty_tables_are_counted_too() -> None:
    """That nothing gave up is a result."""
    none = np.zeros(0, np.int64)
    html = other_page(aborts={"qp": none, "time_ps": none}, drops={"port": none})
    assert "<p>run: no rows in aborts, drops.</p>" in html


def test_alike_tables_of_several_runs_are_shown_once() -> None:
    """The same fits in two records, other ones in a third."""
    records = [
        RunRecord(kind="validate local", run={}, tables={"calibration": {"bytes": np.array([size])}})
        for size in (8, 8, 9)
    ]
    html = build_page(records, title="page", labels=["a", "b", "c"])
    assert re.findall(r"<caption>(.*?):", section_of(html)) == ["a, b", "c"]


def test_columns_of_another_version_and_of_other_types_are_shown_as_they_are() -> None:
    """Text where numbers belong, a column that no schema has, an address beyond IPv4: no error, and nothing hidden."""
    hops = {
        "ipv4": np.array([2**40, 0x0A000001]),
        "distance": np.array(["near", "far"]),
        "path": np.array([1.5, None], object),
        "colour": np.array(["x" * 100, "red"]),
    }
    rows = cells_of(other_page("topo probe", probed_hops=hops))
    assert rows == [[MISSING, "near", "1.5", f"{'x' * (MAX_TEXT - 1)}…"], ["10.0.0.1", "far", "None", "red"]]


def test_many_columns_are_cut_with_their_count() -> None:
    """A sweep without results that varies 30 keys has 34 columns: 24 are shown, 10 counted."""
    named = {"point": np.zeros(1, int), "settings": np.array(["x"]), "is_on_front": np.zeros(1, int)}
    named["num_seeds"] = np.ones(1, int)
    points = named | {f"vary.key{index}": np.array(["1"]) for index in range(30)}
    html = section_of(other_page("sim sweep", points=points))
    assert html.count('<th scope="col"') == MAX_COLUMNS == 24
    assert "10 columns more." in html


def test_files_beside_the_tables_are_listed_with_their_rows(tmp_path: Path) -> None:
    """A trace of three requests, a capture, a table of another version, a damaged file; a link is not followed."""
    record = RunRecord(kind="train run", run={"name": "run"}, files={"capture.pcap": b"1234"})
    directory = record.write(tmp_path / "run")
    pq.write_table(pa.table({"rank": [0, 1, 2]}), directory / "comm_trace.parquet")
    pq.write_table(pa.table({"x": [0, 1]}), directory / "tomorrow.parquet")
    (directory / "job_trace.parquet").write_bytes(b"no Parquet")
    (directory / "placement.csv").symlink_to("/etc/passwd")
    (directory / "notes.txt").write_text("not a file of a record")
    html = write_page([directory]).read_text(encoding="utf-8")
    listed = [(row[0], row[1], row[3]) for row in cells_of(html)]
    assert listed == [
        ("capture.pcap", MISSING, "packets of the captured ports"),
        ("comm_trace.parquet", "3", "communication trace: a request of a rank in each row"),
        ("job_trace.parquet", MISSING, "not a readable Parquet file"),
        ("tomorrow.parquet", "2", "a table that this version does not know"),
    ]


def test_the_page_of_a_large_record_grows_by_little(make_record: MakeRecord) -> None:
    """A million rows in two tables cost less than 20 KB of page."""
    many = np.arange(1_000_000)
    long = {
        "flow_samples": dict.fromkeys(("time_ps", "qp", "rate_bps", "cwnd_bytes", "rtt_ps"), many),
        "queues": dict.fromkeys(("port", "priority", "tx_bytes", "pauses", "paused_ps"), many % 12),
    }
    with_tables, without = (build_page([make_record(tables=tables)], title="page") for tables in (long, {}))
    assert len(with_tables) - len(without) < 20_000
