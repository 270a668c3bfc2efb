"""Stretches of a step, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.trainer_probe.training import stretches
from fabrictune.trainer_probe.training.stretches import last_step_stretches
from tests.observability.timeline.test_sources import trace


def test_work_and_waits_fill_a_rank_from_its_first_work_to_its_last_end() -> None:
    """Step 1 of rank 0: work from 15 ns to the issue at 25 ns, then a wait of 11 ns for dp."""
    rows = to_rows(last_step_stretches(trace()))
    assert [(row["rank"], row["axis"], row["tag"], row["start_ns"], row["duration_ns"]) for row in rows] == [
        (0, "work", "", 15, 10),
        (0, "dp", "gradients", 25, 11),
        (1, "work", "", 15, 10),
        (1, "dp", "gradients", 25, 11),
    ]
    assert {row["step"] for row in rows} == {1}


def test_a_trace_without_times_or_rows_has_none() -> None:
    """Planned requests were not measured."""
    none = np.zeros(0, np.int64)
    planned = replace(trace(), issue_ps_N=none, complete_ps_N=none, exposed_wait_ps_N=none)
    assert to_rows(last_step_stretches(planned)) == []


def test_ranks_are_whole_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows have room for one rank of two."""
    monkeypatch.setattr(stretches, "MAX_STRETCHES", 3)
    assert [row["rank"] for row in to_rows(last_step_stretches(trace()))] == [0, 0]
