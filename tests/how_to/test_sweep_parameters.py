"""The page on sweeps says what is true: its file is read as it stands there, and runs."""

import re
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.schema import SEARCH_CHOICE, load_sweep

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "sweep-parameters.md"
BURST = """
name: burst
fabric: {builder: clos, num_hosts: 10, hosts_per_tor_set: 10, nics_per_host: 1, tiers: 2}
traffic: {workload: incast, senders: 8, message: 2 MB}
"""


def test_its_sweep_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """3 x 3 points of three seeds, both keys with an effect, and lines for a NIC."""
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    Path("marking.yaml").write_text(text)
    Path("burst.yaml").write_text(BURST)
    assert run(["sim", "sweep", "marking.yaml"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("2 of 9 points are Pareto-optimal (*); 3 seeds each\n")
    assert "RATE_REDUCE_MONITOR_PERIOD_P1=" in shown
    record = RunRecord.read(Path("runs/marking/result"))
    assert record.tables["points"]["num_seeds"].tolist() == [3] * 9
    assert set(record.tables["sensitivity"]["metric"]) == {"completion_time.max", "throughput.mean", "fairness"}


def test_it_names_every_search() -> None:
    """A method that is added is written down."""
    assert all(f"`{name}`" in PAGE.read_text() for name in SEARCH_CHOICE.specs)


def test_the_bundled_sweeps_are_read() -> None:
    """Each has a question, and its scenario is there."""
    sweeps = [load_sweep(path) for path in sorted((ROOT / "scenarios" / "sweeps").glob("*.yaml"))]
    assert sweeps
    assert all(sweep.question and sweep.scenario.exists() for sweep in sweeps)
