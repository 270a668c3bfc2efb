"""The Gantt chart of a step: bars where they belong, and what is not drawn counted."""

import re

import numpy as np
import pytest

from fabrictune.reports import gantt
from fabrictune.reports.gantt import draw_step


def table(num_ranks: int = 2) -> dict[str, np.ndarray]:
    """Each rank works 600 ns, waits 300 ns for dp, and works 100 ns."""
    ranks = np.repeat(np.arange(num_ranks), 3)
    return {
        "step": np.full(3 * num_ranks, 7),
        "rank": ranks,
        "axis": np.array(["work", "dp", "work"] * num_ranks, object),
        "tag": np.array(["", "gradients", ""] * num_ranks, object),
        "start_ns": np.array([0, 600, 900] * num_ranks) + 5_000,
        "duration_ns": np.array([600, 300, 100] * num_ranks),
    }


def bars(drawing: str) -> list[tuple[str, float, float]]:
    """Return class, left edge and width of the bars, without the legend's swatches."""
    found = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="15" class="([\w-]+)">', drawing)
    return [(class_, float(x), float(width)) for x, width, class_ in found]


def test_stretches_lie_one_after_another_on_one_scale() -> None:
    """952 wide from 80 on: work to 60 %, dp to 90 %, work to the end."""
    figure = draw_step("run", table(1))
    assert bars(str(figure.drawing)) == [("fill-1", 80, 571.2), ("stack-0", 651.2, 285.6), ("fill-1", 936.8, 95.2)]
    assert figure.caption == "run: step 7, 1 rank."
    assert "dp gradients, 300 ns" in figure.drawing


def test_the_numbers_are_sums_by_axis() -> None:
    """700 ns of work, 300 ns of waits: 30 %."""
    figure = draw_step("run", table())
    assert figure.table is not None
    assert [cell.text for cell in figure.table.rows[1]] == ["1", "700 ns", "300 ns", "30 %"]
    assert figure.table.headings == ("Rank", "Work", "Waits for dp", "Waiting")


def test_what_is_not_drawn_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 ranks of 3 stretches: 32 ranks, and of their 96 stretches the 50 longest."""
    monkeypatch.setattr(gantt, "MAX_BARS", 50)
    figure = draw_step("run", table(40))
    assert figure.caption == "run: step 7, the first 32 of 40 ranks. Of 96 stretches the 50 longest are drawn."
    assert len(bars(str(figure.drawing))) == 50
