"""Summary of a replayed trace: steps, exposed communication by axis, and what the critical path consists of."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.foundation.units import format_duration, format_fraction
from fabrictune.studies.replay.critical_path import WORK

MAX_STEPS = 8  # that are listed
MAX_PLACES = 3  # ranks and links of the critical path that are named


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """One step; times of a rank are means over ranks."""

    step: int
    duration_ps: int
    work_ps: int
    exposed_ps: Mapping[str, int]  # by axis
    work_alone_ps: int  # UNKNOWN where it is not computed
    lower_bound_ps: int


@dataclass(frozen=True, kw_only=True)
class ReplaySummary:
    """A replayed job."""

    part: str  # of a mixture, empty where the job is alone
    num_ranks: int
    steps: Sequence[StepResult]
    critical_path_ps: Mapping[str, int]  # by `work` or axis, longest first
    critical_ranks_ps: Mapping[int, int]  # work on the path by rank, longest first
    critical_links_ps: Mapping[str, int]  # transfers on the path by the busiest link of each, longest first

    def as_json(self) -> dict[str, Any]:
        """Return the replay as JSON values: every number under a key with its unit."""
        return {
            "part": self.part,
            "num_ranks": self.num_ranks,
            "steps": [_step_as_json(step) for step in self.steps],
            "critical_path": [{"axis": axis, "duration_ps": ps} for axis, ps in self.critical_path_ps.items()],
            "critical_ranks": [{"rank": rank, "work_ps": ps} for rank, ps in self.critical_ranks_ps.items()],
            "critical_links": [{"link": link, "duration_ps": ps} for link, ps in self.critical_links_ps.items()],
        }

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings of `rows`."""
        exposed = (f"exposed {_named(axis)}" for axis in self.steps[0].exposed_ps)
        return ("step", "time", "work", *exposed, "without network", "lower bound")

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The steps, for people; of many the first ones and the mean of all."""
        shown = self.steps if len(self.steps) <= MAX_STEPS else self.steps[: MAX_STEPS - 1]
        rows = [_cells(str(step.step), [step]) for step in shown]
        return rows if len(self.steps) == 1 else [*rows, _cells("mean", self.steps)]

    @property
    def lines(self) -> list[str]:
        """What the critical path consists of, for people."""
        whole_ps = sum(self.critical_path_ps.values())
        parts = _shares(self.critical_path_ps, whole_ps)
        named = [
            ("most work", [(f"rank {rank}", time_ps) for rank, time_ps in self.critical_ranks_ps.items()]),
            ("most transfers", list(self.critical_links_ps.items())),
        ]
        lines = [f"critical path {format_duration(whole_ps)}: {parts}"]
        for what, places in named:
            if places:
                texts = [f"{place} {format_duration(time_ps)}" for place, time_ps in places[:MAX_PLACES]]
                more = f", and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
                lines.append(f"  {what}: {', '.join(texts)}{more}")
        return lines


def _step_as_json(step: StepResult) -> dict[str, Any]:
    """Return a step as JSON values; null for what is not computed."""
    bounds = {"work_alone_ps": step.work_alone_ps, "lower_bound_ps": step.lower_bound_ps}
    return {
        "step": step.step,
        "duration_ps": step.duration_ps,
        "work_ps": step.work_ps,
        "exposed": [{"axis": axis, "exposed_ps": exposed_ps} for axis, exposed_ps in step.exposed_ps.items()],
        **{name: None if bound_ps == UNKNOWN else bound_ps for name, bound_ps in bounds.items()},
    }


def summarize_replays(record: RunRecord) -> list[ReplaySummary]:
    """Return the summary of each replayed job of a record, in the order of parts."""
    steps = record.tables.get("replayed_steps")
    if steps is None:
        return []
    parts = dict.fromkeys(steps["part"].tolist()) if "part" in steps else {"": None}
    return [_summary(record, part) for part in parts]


def _summary(record: RunRecord, part: str) -> ReplaySummary:
    path, links = _own(record, "critical_path", part), _own(record, "critical_links", part)
    is_work = path["axis"] == WORK
    ports = record.tables["fabric"]
    names = [f"{ports['node_name'][port]}:{ports['port_name'][port]}" for port in range(len(ports["port"]))]
    link_ps = {
        f"{names[port]} -> {names[int(ports['peer_port'][port])]}": time_ps
        for port, time_ps in zip(links["port"].tolist(), links["duration_ps"].tolist(), strict=True)
    }
    return ReplaySummary(
        part=part,
        num_ranks=len(np.unique(_own(record, "replayed_ranks", part)["rank"])),
        steps=_steps(record, part),
        critical_path_ps=_sums(path["axis"], path["duration_ps"]),
        critical_ranks_ps=_sums(path["rank"][is_work], path["duration_ps"][is_work]),
        critical_links_ps=link_ps,
    )


def _steps(record: RunRecord, part: str) -> list[StepResult]:
    exposed: dict[int, dict[str, int]] = {}
    for row in to_rows(_own(record, "exposed_communication", part)):
        exposed.setdefault(row["step"], {})[row["axis"]] = row["exposed_ps"]
    return [
        StepResult(
            **{name: row[name] for name in ("step", "duration_ps", "work_ps", "work_alone_ps", "lower_bound_ps")},
            exposed_ps=exposed.get(row["step"], {}),
        )
        for row in to_rows(_own(record, "replayed_steps", part))
    ]


def _own(record: RunRecord, table: str, part: str) -> Columns:
    """Return the rows of a table that belong to a part."""
    columns = record.tables[table]
    if "part" not in columns:
        return columns
    is_own = columns["part"] == part
    return {name: values[is_own] for name, values in columns.items()}


def _sums(names: NDArray[Any], times_ps: NDArray[Any]) -> dict[Any, int]:
    """Return the times by name, the longest first."""
    sums = Counter[Any]()
    for name, time_ps in zip(names.tolist(), times_ps.tolist(), strict=True):
        sums[name] += time_ps
    return dict(sums.most_common())


def _cells(name: str, steps: Sequence[StepResult]) -> tuple[str, ...]:
    """Return a row of means over steps."""

    def mean(values: Sequence[int]) -> str:
        return format_metric(sum(values) / len(values), "ps") if min(values) >= 0 else "-"

    return (
        name,
        mean([step.duration_ps for step in steps]),
        mean([step.work_ps for step in steps]),
        *(mean([step.exposed_ps[axis] for step in steps]) for axis in steps[0].exposed_ps),
        mean([step.work_alone_ps for step in steps]),
        mean([step.lower_bound_ps for step in steps]),
    )


def _shares(times_ps: Mapping[str, int], whole_ps: int) -> str:
    return ", ".join(
        f"{_named(name)} {format_fraction(time_ps / max(whole_ps, 1))}" for name, time_ps in times_ps.items()
    )


def _named(axis: str) -> str:
    """Return an axis for people: traces of other tools may name none."""
    return axis or "unnamed axis"
