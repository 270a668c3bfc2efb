"""The page on timelines says what is true: its commands print what it shows, and its query answers."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.observability.timeline.activity import activity_of_spans
from fabrictune.observability.timeline.clocks import align
from fabrictune.observability.timeline.job import job_timeline
from fabrictune.observability.timeline.perfetto import write_perfetto
from tests.observability.timeline.jobs import job
from tests.observability.timeline.trace_processor import trace_processor

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "see-a-timeline.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_commands_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The simulated run, word for word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    simulate, draw = BLOCKS[0][1].splitlines()
    assert run(shlex.split(simulate)[1:]) == 0
    capsys.readouterr()
    assert run(shlex.split(draw)[1:]) == 0
    assert capsys.readouterr().out == BLOCKS[1][1]


def test_its_query_counts_how_often_each_rank_comes_last(tmp_path: Path) -> None:
    """Three all-reduces of a made-up job."""
    aligned, clocks = align(activity_of_spans(job(error_ns=0)), precision_ns=100_000, where="run")
    write_perfetto(job_timeline(aligned, clocks, facts={}), tmp_path / "job.pftrace")
    query = next(text for kind, text in BLOCKS if kind == "sql")
    with trace_processor() as processor:
        rows = processor.load(tmp_path / "job.pftrace").query(query)
    assert sum(times for _, times in rows) == 3
