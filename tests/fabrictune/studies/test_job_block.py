"""Blocks of jobs: what spans and a journal say of each rank."""

from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.span_lines import Span, SpanHeader, pass_line, request_line, work_line
from fabrictune.foundation.span_writer import FOLDER, SpanWriter
from fabrictune.foundation.spans import SpanKind
from fabrictune.foundation.traces import Operation
from fabrictune.studies.job_block import job_block
from fabrictune.trainer_probe.operation.journal import open_journal

LAYOUT = ParallelLayout(tp=2, dp=2, pp=2)
STEP_NS, FORWARD_NS = 1_000_000, 400_000
SLOW, OPEN, SILENT = 1, 5, 7


def write_job(folder: Path, *, num_steps: int = 8) -> None:
    """Write the spans of a job: rank 1 is a quarter slower, rank 5 hangs in its last request, rank 7 wrote nothing."""
    groups = LAYOUT.axis_groups()
    for rank in range(LAYOUT.world_size):
        if rank == SILENT:
            continue
        header = SpanHeader(
            rank=rank, layout=LAYOUT, host=f"node{rank // 4}", pid=1, clock_offset_ns=0, clock_error_ns=0
        )
        writer = SpanWriter(folder / FOLDER, header)
        group = next(number for number, ranks in enumerate(groups) if rank in ranks)  # tp
        for step in range(num_steps):
            begin = step * STEP_NS
            end = begin + FORWARD_NS * (5 if rank == SLOW else 4) // 4
            is_open = rank == OPEN and step == num_steps - 1
            request = Span(
                SpanKind.REQUEST, step, end, end, -1 if is_open else end + 100_000, Operation.ALL_REDUCE, group, step
            )
            lines = [pass_line(SpanKind.FORWARD, step, begin, end, 0, 0), request_line(request)]
            writer.write(step, "".join([*lines, work_line(SpanKind.STEP, step, begin, begin + STEP_NS)]))
        writer.close()


def test_spans_alone_say_who_is_slow_open_or_silent(tmp_path: Path) -> None:
    """Rank 1 stands out among ranks 0 to 3, its peers at the first place of the pipeline."""
    write_job(tmp_path)
    block = job_block(tmp_path)
    assert block.axes == {"dp": 2, "pp": 2, "tp": 2}
    assert [cube.name for cube in block.cubes] == [str(rank) for rank in range(8)]
    assert block.cubes[5].place == {"dp": 0, "pp": 1, "tp": 1}
    assert (block.cubes[1].state, block.cubes[1].detail) == ("straggler", "slow work, 25.0%")
    assert block.cubes[5].state == "request without an end"
    assert block.cubes[7].state == "no spans"
    assert block.counts["as its peers"] >= 4


def test_a_journal_adds_the_dead_the_hung_and_the_spare(tmp_path: Path) -> None:
    """Of the newest generation; an evicted node is no spare."""
    write_job(tmp_path)
    journal = open_journal(str(tmp_path))
    joined = {"host": "", "address": "", "num_slots": 4, "check": ""}
    fault = {"generation": 1, "entity": "", "nodes": [], "evidence": [], "quiet_s": 1.0, "is_fatal": True}
    events: list[tuple[str, dict[str, Any]]] = [
        *(("node joined", {"node": node, **joined}) for node in ("a", "b", "c", "d")),
        ("generation started", {"generation": 0, "nodes": ["a", "b"]}),
        ("fault detected", {**fault, "cause": "rank killed", "ranks": [0]}),
        ("node evicted", {"node": "d", "cause": "node lost"}),
        ("generation started", {"generation": 1, "nodes": ["a", "b"]}),
        ("fault detected", {**fault, "cause": "rank hung", "ranks": [2]}),
        ("fault detected", {**fault, "cause": "rank killed", "ranks": [3]}),
    ]
    for kind, values in events:
        journal.append(kind, values, elapsed_s=1.0)
    journal.close()
    block = job_block(tmp_path)
    assert [block.cubes[rank].state for rank in (0, 2, 3)] == [block.cubes[0].state, "hung", "dead"]
    assert block.cubes[0].state != "dead"
    assert [(cube.name, cube.state) for cube in block.cubes[8:]] == [("c", "spare")]


def test_the_command_writes_the_page_and_says_what_is_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As people read it, and as machines do."""
    write_job(tmp_path)
    out = tmp_path / "block.html"
    assert run(["report", "block", str(tmp_path), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "1 request without an end\n1 no spans\n" in printed
    assert printed.endswith(f"page: {out}\n")
    assert 'data-place="0 1 1"' in out.read_text()
    assert run(["report", "block", str(tmp_path), "--out", str(out), "--json"]) == 0


def test_a_folder_without_spans_is_refused(tmp_path: Path) -> None:
    """With what to give instead."""
    with pytest.raises(TraceError, match="no spans"):
        job_block(tmp_path)
