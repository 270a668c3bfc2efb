"""Changes in results from the first run of a page to the others, with 95 % intervals.

An interval is made from what a run has many values of, its flows, iterations or steps; or, where each scenario was run
under three seeds or more, from the runs. What is one number of one run has none, and the page says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.changes import Change, change_of_means, change_of_pairs
from fabrictune.foundation.metrics.units import Unit, format_metric
from fabrictune.foundation.wording import count, some
from fabrictune.reports.answers.answer import change as percentage
from fabrictune.reports.blocks import Cell, Section, Table, number, plural, words
from fabrictune.reports.kpis import kpis_by_name
from fabrictune.reports.record_view import Run
from fabrictune.reports.repetitions import Repetitions, label_of, repetitions_of, seeds_of
from fabrictune.reports.samples import Sample, samples_of

MAX_ROWS = 64
ADVICE = "Runs of each scenario under three seeds or more give one."
REASON = "zero before, too few values, or one that never ended"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measure of the first run and of another."""

    measure: str
    unit: Unit
    first: float
    label: str
    second: float
    change: Change | None
    made_from: str
    is_better_more: bool | None


def changes_section(runs: Sequence[Run]) -> Section | None:
    """Return a table for each kind of which there are several runs, or None."""
    kinds = dict.fromkeys(run.record.kind for run in runs)
    tables = [
        table
        for kind in kinds
        if (table := changes_table([run for run in runs if run.record.kind == kind], kind)) is not None
    ]
    if not tables:
        return None
    lead = (
        "Green is better than the first run, red worse; without a colour it is neither, or may be chance: the 95 % "
        "interval holds no change. Flows, iterations and steps of a run are taken as independent: their interval is "
        "for those of this run, not of another seed."
    )
    return Section(anchor="changes", title="Changes with intervals", lead=lead, blocks=tuple(tables))


def changes_table(runs: Sequence[Run], kind: str) -> Table | None:
    """Return a row for each measure and run after the first; None where nothing can be compared."""
    groups = repetitions_of(runs)
    if len(runs) < 2 or len(groups) == 1:
        return None
    first = label_of(groups[0]) if groups else runs[0].label
    every = list(_over_seeds(groups) if groups else _within_runs(runs))
    rows = [row for row in every if row.change is not None]
    without = _without_interval([row.measure for row in every if row.change is None], [] if groups else runs)
    if not rows:
        return Table(headings=(), rows=(), caption=f"{kind}: {without}") if without else None
    more = f"{plural(len(rows) - MAX_ROWS, 'row')} more." if len(rows) > MAX_ROWS else ""
    table = _table(rows[:MAX_ROWS], first)
    return replace(table, caption=f"{kind}{table.caption}", left_out=" ".join(filter(None, (more, without))))


def _table(rows: Sequence[Row], first: str) -> Table:
    """Return the rows; what is the same in all of them stands in the headings or the caption."""
    labels, origins = ({getattr(row, name) for row in rows} for name in ("label", "made_from"))
    has_runs, has_origins = len(labels) > 1, len(origins) > 1
    return Table(
        caption=f": against {first}{'' if has_origins else f', over {origins.pop()}'}",
        headings=(
            "Measure",
            first,
            *(("Run", "Its value") if has_runs else labels),
            "Change",
            "95 % interval",
            *(("Made from",) if has_origins else ()),
        ),
        rows=tuple(_cells(row, has_run=has_runs, has_origin=has_origins) for row in rows),
        is_sortable=False,
    )


def change_over_seeds(groups: tuple[Repetitions, Repetitions], name: str) -> Change | None:
    """Return the change of an indicator from the runs of one scenario to those of another, by seed where they share."""
    values = [_values(group, name) for group in groups]
    orders = [sorted(range(len(group)), key=seeds_of(group).__getitem__) for group in groups]
    first, second = (value[order] for value, order in zip(values, orders, strict=True))
    return (change_of_pairs if _share_seeds(*groups) else change_of_means)(first, second)


def _over_seeds(groups: Sequence[Repetitions]) -> Iterator[Row]:
    """Yield the changes of all indicators, each the mean over a scenario's seeds."""
    first, *others = groups
    for name, kpi in kpis_by_name(first[0]).items():
        for group in others:
            yield Row(
                measure=name,
                unit=kpi.unit,
                first=float(_values(first, name).mean()),
                label=label_of(group),
                second=float(_values(group, name).mean()),
                change=change_over_seeds((first, group), name),
                made_from=_made_from(len(first), len(group), "seed", is_paired=_share_seeds(first, group)),
                is_better_more=kpi.is_better_more,
            )


def _within_runs(runs: Sequence[Run]) -> Iterator[Row]:
    """Yield the changes of what each run has many values of."""
    first, *others = [(run, samples_of(run)) for run in runs]
    for measure, own in first[1].items():
        for run, samples in others:
            if (sample := samples.get(measure)) is not None:
                yield _row(own, sample, run.label)


def _row(first: Sample, second: Sample, label: str) -> Row:
    numbers = len(first.values), len(second.values)
    return Row(
        measure=first.measure,
        unit=first.unit,
        first=first.value,
        label=label,
        second=second.value,
        change=first.change_to(second),
        made_from=_made_from(*numbers, first.item, is_paired=first.has_partners_in(second)),
        is_better_more=False,  # all are times
    )


def _without_interval(tried: Sequence[str], single_runs: Sequence[Run]) -> str:
    """Return which measures have no interval and why, those that were tried and the indicators of single runs."""
    sampled = set[str]().union(*(samples_of(run) for run in single_runs))
    names = dict.fromkeys(name for run in single_runs for name in kpis_by_name(run) if name not in sampled)
    reasons = {REASON: dict.fromkeys(tried), "one number of a run each": names}
    parts = [f"{some(named)} ({reason})" for reason, named in reasons.items() if named]
    advice = f" {ADVICE}" if names else ""
    return f"No interval for {', nor for '.join(parts)}.{advice}" if parts else ""


def _made_from(num_first: int, num_second: int, item: str, *, is_paired: bool) -> str:
    if is_paired:
        return f"{count(num_first, item)}, paired"
    return f"{num_first:,} and {count(num_second, item)}"


def _share_seeds(first: Repetitions, second: Repetitions) -> bool:
    return sorted(seeds_of(first)) == sorted(seeds_of(second))


def _values(group: Repetitions, name: str) -> FloatArray:
    """Return an indicator of each run, nan where a run has none."""
    return np.array([kpi.value if (kpi := kpis_by_name(run).get(name)) else np.nan for run in group])


def _cells(row: Row, *, has_run: bool, has_origin: bool) -> tuple[Cell, ...]:
    change = row.change
    assert change is not None, "rows without an interval are named below the table"
    is_exact = change.low == change.high
    return (
        words(row.measure),
        number(row.first, format_metric(row.first, row.unit)),
        *((words(row.label),) if has_run else ()),
        number(row.second, format_metric(row.second, row.unit)),
        number(change.value, percentage(change.value), tone=_tone(row)),
        words("no spread" if is_exact else f"{percentage(change.low)} to {percentage(change.high)}"),
        *((words(row.made_from),) if has_origin else ()),
    )


def _tone(row: Row) -> str:
    """Return whether a change that is no chance, and is seen in its digits, is for better or worse."""
    if row.change is None or row.is_better_more is None or not row.change.is_sure or abs(row.change.value) < 5e-4:
        return ""
    return "better" if (row.change.value > 0) == row.is_better_more else "worse"
