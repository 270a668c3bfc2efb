"""Provenance: a record holds the scenario that was run, whatever becomes of its file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.studies.simulation import simulate

TEXT = """\
name: three-to-one  # kept with its comments
fabric: {builder: fat_tree, radix: 4}
traffic: {workload: incast, senders: 3, message: 100 KB}
"""


def edit(path: Path) -> None:
    """Save another scenario under the same name."""
    path.write_text(TEXT.replace("senders: 3", "senders: 5"))


@pytest.mark.parametrize("change", [edit, Path.unlink], ids=["edited", "deleted"])
def test_a_record_holds_the_text_that_was_run(change: Callable[[Path], None], tmp_path: Path) -> None:
    """The file is edited, or deleted, while the engine runs: the record has the text that was loaded."""
    path = tmp_path / "scenario.yaml"
    path.write_text(TEXT)
    calls: list[float] = []

    def report_progress(fraction: float, _note: str = "", /) -> None:
        if not calls:
            change(path)
        calls.append(fraction)

    record = simulate(load_scenario(path), progress=report_progress)
    assert calls
    assert record.run["scenario"] == TEXT
    assert len(record.tables["transfers"]["transfer"]) == 3


def test_an_overridden_scenario_is_described_as_it_runs(tmp_path: Path) -> None:
    """Saved as a file, the text of the description is the scenario with its changes."""
    path = tmp_path / "scenario.yaml"
    path.write_text(TEXT)
    changed = override(load_scenario(path), {"traffic.senders": 5}, origin="test")
    (tmp_path / "again.yaml").write_text(describe_scenario(changed)["scenario"])
    assert load_scenario(tmp_path / "again.yaml") == changed


def test_a_scenario_without_changes_keeps_its_words(tmp_path: Path) -> None:
    """Comments and order included."""
    path = tmp_path / "scenario.yaml"
    path.write_text(TEXT)
    unchanged = override(load_scenario(path), {}, origin="test")
    assert describe_scenario(unchanged)["scenario"] == TEXT
