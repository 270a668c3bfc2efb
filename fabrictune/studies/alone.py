"""Each part of a mixture alone, and by how much the others slow it.

Alone a part has its places, queue pairs and paths: all that is left out is what the others send. Its time is from its
first transfer ready to the last one's last byte.
"""

import math
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from fabrictune.foundation.metrics.transfers import makespan_ps, of_part
from fabrictune.foundation.progress import Progress, stage
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.traces import Dependencies, TrafficTrace
from fabrictune.scenario.compilation import CompiledScenario


class RunEngine(Protocol):
    """Runs a compiled scenario in its engine."""

    def __call__(self, compiled: CompiledScenario, *, progress: Progress | None = None) -> RunRecord: ...


def compare_alone(
    compiled: CompiledScenario, record: RunRecord, run_engine: RunEngine, progress: Progress | None = None
) -> Columns:
    """Return the table `alone`: a row for each part of the traffic that `record` simulated; none without parts.

    The time alone of a part whose run was interrupted is nan.
    """
    names = [] if compiled.part_N is None else list(dict.fromkeys(compiled.part_N.tolist()))
    beside_ps = [makespan_ps(of_part(record, name).tables["transfers"]) for name in names]
    alone_ps = [
        _alone_ps(compiled, name, run_engine, stage(progress, row, len(names))) for row, name in enumerate(names)
    ]
    return {
        "part": np.array(names, object),
        "beside_ps": np.array(beside_ps, np.float64),
        "alone_ps": np.array(alone_ps, np.float64),
        "slowdown": np.array(beside_ps, np.float64) / np.array(alone_ps, np.float64),
    }


def _alone_ps(compiled: CompiledScenario, name: str, run_engine: RunEngine, progress: Progress | None) -> float:
    assert compiled.part_N is not None, "of a mixture"
    rows = np.flatnonzero(compiled.part_N == name)
    traffic = _rows(compiled.traffic, int(rows[0]), int(rows[-1]) + 1)
    alone = replace(compiled, traffic=traffic, part_N=compiled.part_N[rows])
    record = run_engine(alone, progress=progress)
    return math.nan if record.run["outcome"] == "interrupted" else makespan_ps(record.tables["transfers"])


def _rows(trace: TrafficTrace, begin: int, end: int) -> TrafficTrace:
    """Return rows `begin` to `end` - 1, which wait for none of the others."""
    names = [name for name in TrafficTrace.__annotations__ if name.endswith("_N")]
    columns: dict[str, Any] = {name: trace.column(name, begin, end) for name in names}
    waits = trace.waits(begin, end)
    own = Dependencies(offset_N1=waits.offset_N1, row_D=waits.row_D - begin)
    return TrafficTrace(**columns, dependencies=own)
