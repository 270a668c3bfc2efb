"""The table of indicators: the draft's names down the side, one column a run, ratios to the first."""

from collections.abc import Sequence

from foundation.units import format_bytes, format_duration, format_rate
from reports.blocks import MISSING, TIMES, Cell, Section, Table, number, percent, words
from reports.kpis import Kpi, run_kpis
from reports.runs import Run


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
    return Section(anchor="kpis", title="Key performance indicators", lead=lead, blocks=tuple(tables))


def kpi_table(runs: Sequence[Run], kind: str) -> Table:
    """Return a row for each indicator that any of the runs has."""
    found = {run.label: {kpi.name: kpi for kpi in run_kpis(run)} for run in runs}
    kpis = {name: kpi for of_run in found.values() for name, kpi in of_run.items()}
    rows = tuple(
        (
            words(name),
            *(_value_cell(of_run.get(name), _baseline(found, name, label)) for label, of_run in found.items()),
            words(kpi.bound),
            words(kpi.formula),
        )
        for name, kpi in kpis.items()
    )
    return Table(caption=kind, headings=("Indicator", *found, "Bound", "Formula"), rows=rows)


def format_kpi(kpi: Kpi) -> str:
    """Return an indicator's value for people, with its unit."""
    match kpi.unit:
        case "ps":
            return format_duration(kpi.value)
        case "bps":
            return format_rate(kpi.value)
        case "bytes":
            return format_bytes(kpi.value)
        case "ppm":
            return f"{kpi.value:,.4g} ppm"
        case "fraction":
            return percent(kpi.value)
        case "count":
            return f"{kpi.value:,.0f}"
        case "ratio" | "index":
            return f"{kpi.value:.3f}"


def _baseline(found: dict[str, dict[str, Kpi]], name: str, label: str) -> Kpi | None:
    """Return the first run's indicator, for every run but itself."""
    first = next(iter(found))
    return found[first].get(name) if label != first else None


def _value_cell(kpi: Kpi | None, baseline: Kpi | None) -> Cell:
    if kpi is None:
        return words(MISSING)
    note = f"{TIMES} {kpi.value / baseline.value:.2f}" if baseline is not None and baseline.value > 0 else ""
    tone = {True: "good", False: "bad", None: ""}[kpi.is_within]
    return number(kpi.value, format_kpi(kpi), note=note, tone=tone)
