"""`report figures`: each figure that records have the numbers for, as a file; and their tables as CSV."""

import csv
import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord

pytest.importorskip("matplotlib")

PER_RUN = ("queues", "throughput")  # figures of one run each


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two runs of one scenario."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("none", "swift"):
        words = ["sim", "run", "scenarios/incast.yaml", "--set", f"law={name}", "--set", "probe.interval=10 us"]
        assert run([*words, "--out", str(folder / name), "--quiet"]) in (0, 1)
    return [str(folder / name) for name in ("none", "swift")]


def test_the_figures_of_one_record_are_named_after_what_they_show(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the record has no table for is left out, and the same record gives the same bytes."""
    capsys.readouterr()
    assert run(["report", "figures", runs[0], "--out", str(tmp_path), "--json"]) == 0
    files = [Path(name) for name in json.loads(capsys.readouterr().out)["files"]]
    assert [file.name for file in files] == ["completion-times.svg", "link-loads.svg", "queues.svg", "throughput.svg"]
    before = [file.read_bytes() for file in files]
    assert all(content.startswith(b"<?xml") for content in before)
    assert run(["report", "figures", runs[0], "--out", str(tmp_path)]) == 0
    assert [file.read_bytes() for file in files] == before


def test_records_share_a_figure_with_a_curve_of_each(runs: list[str], tmp_path: Path) -> None:
    """Queues and throughput are shown of one run a figure, and the file says of which."""
    assert run(["report", "figures", *runs, "--out", str(tmp_path), "--format", "pdf"]) == 0
    own = [f"{place}-{name}-{what}.pdf" for place, name in ((1, "none"), (2, "swift")) for what in PER_RUN]
    assert sorted(file.name for file in tmp_path.iterdir()) == [*own, "completion-times.pdf", "link-loads.pdf"]


def test_a_record_without_the_table_of_a_figure_is_left_out_of_it(runs: list[str], tmp_path: Path) -> None:
    """The others' curves are drawn all the same, and a figure that theirs are too few for is left out."""
    other = RunRecord(kind="doctor", run={"name": "here"}).write(tmp_path / "here")
    assert run(["report", "figures", str(other), *runs, "--out", str(tmp_path / "figures")]) == 0
    own = [f"{place}-{name}-{what}.svg" for place, name in ((2, "none"), (3, "swift")) for what in PER_RUN]
    files = sorted(file.name for file in (tmp_path / "figures").iterdir())
    assert files == [*own, "completion-times.svg", "link-loads.svg"]


def test_tables_are_written_with_names_of_hosts(runs: list[str], tmp_path: Path) -> None:
    assert run(["report", "figures", runs[0], "--out", str(tmp_path), "--format", "csv"]) == 0
    record = RunRecord.read(Path(runs[0]))
    assert {file.stem for file in tmp_path.iterdir()} == set(record.tables)
    with (tmp_path / "transfers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(record.tables["transfers"]["qp"])
    assert [int(row["finish_ps"]) for row in rows] == record.tables["transfers"]["finish_ps"].tolist()


def test_a_record_without_such_tables_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunRecord(kind="doctor", run={"name": "here"}).write(tmp_path / "record")
    assert run(["report", "figures", str(folder), "--out", str(tmp_path / "figures")]) == 2
    assert "record: no table that a figure is drawn of" in capsys.readouterr().err
    assert not (tmp_path / "figures").exists()
