"""Plans on the page: steps side by side, memory and volumes of each."""

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.blocks import MISSING, Table
from fabrictune.reports.page import build_page
from fabrictune.reports.plans import plans_section
from fabrictune.reports.record_view import open_run

MEMORY = {
    "place": np.arange(2),
    "flops": np.array([10**15, 2 * 10**15]),
    "weights_bytes": np.array([10**9, 10**9]),
    "gradients_bytes": np.array([10**9, 10**9]),
    "optimizer_bytes": np.array([5 * 10**8, 5 * 10**8]),
    "activations_bytes": np.array([3 * 10**9, 10**9]),
}
VOLUMES = {
    "place": np.array([0]),
    "axis": np.array(["pp"], object),
    "operation": np.array(["receive"], object),
    "num_requests": np.array([1200]),
    "buffer_bytes": np.array([6 * 10**6]),
    "sent_bytes": np.array([0]),
    "duration_ps": np.array([0]),
}


def record(**parts: int) -> RunRecord:
    step = {"part": np.array(list(parts), object), "duration_ps": np.array(list(parts.values()), np.int64)}
    tables = {"step_parts": step, "memory": MEMORY, "volumes": VOLUMES}
    return RunRecord(kind="train plan", run={"name": "trial"}, tables=tables)


def cells(table: object) -> list[list[str]]:
    assert isinstance(table, Table)
    return [[str(cell.text) for cell in row] for row in table.rows]


def test_steps_stand_side_by_side() -> None:
    """A part that only one plan has is missing in the other's row."""
    runs = [open_run(record(work=10**12, bubble=10**11), "one"), open_run(record(work=2 * 10**12), "two")]
    section = plans_section(runs)
    assert section is not None
    assert cells(section.blocks[0]) == [["one", "1 s", "100 ms"], ["two", "2 s", MISSING]]
    assert len(section.blocks) == 5


def test_memory_adds_up() -> None:
    """1 + 1 + 0.5 + 3 GB at place 0, 2 GB fewer at place 1; a receive sends nothing and takes no time of its own."""
    section = plans_section([open_run(record(work=1), "plan")])
    assert section is not None
    _, memory, volumes = section.blocks
    assert [row[5:] for row in cells(memory)] == [["5.5 GB", "1 PFLOP"], ["3.5 GB", "2 PFLOP"]]
    assert cells(volumes) == [["0", "pp", "receive", "1,200", "6 MB", "0 B", "0"]]


def test_a_page_without_plans_has_no_section() -> None:
    """Nor has one whose plan lost a column a page: it is refused."""
    assert plans_section([open_run(RunRecord(kind="sim run", run={}, tables={}), "run")]) is None
    assert "Plans" in build_page([record(work=1)], title="plan")
    broken = RunRecord(kind="train plan", run={}, tables={"step_parts": {"part": np.array(["work"], object)}})
    with pytest.raises(RecordError, match="duration_ps"):
        plans_section([open_run(broken, "plan")])
