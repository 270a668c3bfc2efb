"""The page on traces says what is true: its trace is replayed as written, and its traffic has keys that there are."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Operation
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.traffic import CommTraceSpec

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "use-a-trace.md").read_text()
REPLAY, SCALED = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_its_commands_replay_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a fabric alone, and in the scenario, whose screens have the columns that the page explains."""
    monkeypatch.chdir(tmp_path)
    rows = [TraceRow(rank=rank, operation=Operation.ALL_REDUCE, group=(0, 1), num_bytes=10**6) for rank in (0, 1)]
    build_trace(rows).write(tmp_path / "step.parquet")
    (tmp_path / "replay.yaml").write_text(REPLAY)
    settings = ["num_hosts=2", "hosts_per_tor_set=2", "nics_per_host=1", "tiers=2"]
    assert run(["topo", "build", "clos", *settings, "--out", "fabric.json", "--json"]) == 0
    for line in re.findall(r"^fabrictune (?:sim run|ecmp analyze) .*$", PAGE, re.MULTILINE):
        capsys.readouterr()
        assert run(shlex.split(line)[1:]) == 0, line
        if "sim run" in line:
            assert "without network  lower bound" in capsys.readouterr().out


def test_its_scaled_traffic_is_read() -> None:
    """Sixteen replicas of two that were traced."""
    text = REPLAY[: REPLAY.index("traffic:")] + SCALED
    spec = parse_scenario(text, Path("replay.yaml")).traffic.spec
    assert isinstance(spec, CommTraceSpec)
    assert (spec.layout, spec.traced_layout) == (ParallelLayout(tp=2, dp=16, pp=2), ParallelLayout(tp=2, dp=2, pp=2))
