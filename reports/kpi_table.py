"""The table of indicators: the draft's names down the side, one column a run, ratios to the first."""

import math
from collections.abc import Sequence

from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.units import without_exponent
from fabrictune.reports.blocks import TIMES, Cell, Section, Table, missing, number, words
from fabrictune.reports.kpis import Kpi, kpis_by_name
from fabrictune.reports.record_view import Run

NEGLIGIBLE = 0.01  # by which a ratio is off one


def kpi_section(runs: Sequence[Run]) -> Section | None:
    """Return one table for each kind of record, or None where no indicator can be had."""
    tables = []
    for kind in dict.fromkeys(run.record.kind for run in runs):
        table = kpi_table([run for run in runs if run.record.kind == kind], kind)
        if table.rows:
            tables.append(table)
    if not tables:
        return None
    lead = "Names and indicative bounds as in the IETF draft draft-calabria-bmwg-ai-fabric-training-bench."
    if len(runs) > 1:
        lead += f" Green ratios are more than {NEGLIGIBLE * 100:g} % better than the first run, red ones worse."
    return Section(anchor="kpis", title="Key performance indicators", lead=lead, blocks=tuple(tables))


def kpi_table(runs: Sequence[Run], kind: str) -> Table:
    """Return a row for each indicator that any of the runs has."""
    kpis_of_run = list(map(kpis_by_name, runs))
    kpis = {name: kpi for of_run in kpis_of_run for name, kpi in of_run.items()}
    headings = [runs[0].label]
    for run in runs[1:]:
        headings += [run.label, f"{TIMES} {runs[0].label}"]
    rows = tuple(
        (words(name), *_values([of_run.get(name) for of_run in kpis_of_run]), words(kpi.bound), words(kpi.formula))
        for name, kpi in kpis.items()
    )
    return Table(caption=kind, headings=("Indicator", *headings, "Bound", "Formula"), rows=rows, is_sortable=False)


def format_kpi(kpi: Kpi) -> str:
    """Return an indicator's value for people, with its unit."""
    return format_metric(kpi.value, kpi.unit)


def _values(kpis: Sequence[Kpi | None]) -> list[Cell]:
    """Return one cell for the first run, then two for each other: its value, and its ratio to the first."""
    first, *others = kpis
    cells = [_value_cell(first)]
    for kpi in others:
        cells.append(_value_cell(kpi))
        if kpi is None or first is None or first.value == 0 or not math.isfinite(kpi.value / first.value):
            cells.append(missing())
        else:
            ratio = kpi.value / first.value
            cells.append(number(ratio, _ratio(ratio), tone=_tone(kpi, ratio)))
    return cells


def _tone(kpi: Kpi, ratio: float) -> str:
    """Return whether a ratio to the first run is better or worse than one."""
    if kpi.is_better_more is None or abs(ratio - 1) <= NEGLIGIBLE:
        return ""
    return "better" if (ratio > 1) == kpi.is_better_more else "worse"


def _ratio(ratio: float) -> str:
    """Return a ratio with two decimals, a small one with two digits: "1.25", "0.003"."""
    if not ratio:
        return "0"
    return f"{ratio:,.2f}" if abs(ratio) >= 0.095 else without_exponent(ratio, 2)


def _value_cell(kpi: Kpi | None) -> Cell:
    if kpi is None:
        return missing()
    return number(kpi.value, format_kpi(kpi), tone={True: "good", False: "bad", None: ""}[kpi.is_within])
