"""Cost of faults: the goodput of all queue pairs around each, and the packets that each lost."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_rate
from fabrictune.reports.blocks import Block, Cell, Figure, Section, Table, duration, left_out, missing, number, words
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.fault_spans import bands_of, fault_spans
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

FAULTS = select(
    "faults",
    "description",
    "begin_ps",
    "end_ps",
    "goodput_before_bps",
    "goodput_during_bps",
    "goodput_after_bps",
)
DROPS = select("drops", "port", "cause", "packets")
GOODPUT = select("goodput", "begin_ps", "end_ps", "goodput_bps")
MAX_ROWS = 20
MAX_STEPS = 400  # of a drawn curve


def faults_section(runs: Sequence[Run]) -> Section | None:
    """Return the faults of each run and the packets they cost, or None."""
    blocks: list[Block] = []
    for run in runs:
        if (faults := run.rows(FAULTS)) is not None:
            if (goodput := run.rows(GOODPUT)) is not None:
                chart = goodput_chart(run, goodput)
                blocks.append(Figure(drawing=draw_curves(chart), caption=chart.caption))
            blocks += [table for table in (_faults(run.label, faults), _drops(run)) if table is not None]
    if not blocks:
        return None
    lead = "Effects that outlast a fault come from timeouts, longer paths and slow congestion-control recovery."
    return Section(anchor="faults", title="Faults", lead=lead, blocks=tuple(blocks))


def goodput_chart(run: Run, goodput: Columns) -> LineChart:
    """Return the goodput of all queue pairs over time, its mean between faults' begins and ends."""
    begins, ends, rates = (goodput[name][:MAX_STEPS].tolist() for name in GOODPUT.columns)
    corners = [
        corner for row in zip(begins, ends, rates, strict=True) for corner in ((row[0], row[2]), (row[1], row[2]))
    ]
    rest = len(goodput["begin_ps"]) - len(begins)
    later = f" The first {len(begins):,} spans; {rest:,} more in table “goodput”." if rest else ""
    return LineChart(
        across=Scale(name="time", low=0, high=float(ends[-1]), unit="ps"),
        up=Scale(name="goodput", low=0, high=1.05 * max(*rates, 1), unit="bps"),
        curves={"goodput of all queue pairs": corners},
        caption=f"{run.label}: goodput, the mean between faults' begins and ends. Shaded: faults.{later}",
        bands=bands_of(fault_spans(run)),
    )


def _faults(label: str, faults: Columns) -> Table:
    count = len(faults["description"])
    rows = tuple(
        (
            words(str(faults["description"][row])),
            number(faults["begin_ps"][row], duration(int(faults["begin_ps"][row]))),
            _end(int(faults["end_ps"][row])),
            *(_goodput(int(faults[f"goodput_{when}_bps"][row])) for when in ("before", "during", "after")),
        )
        for row in range(min(count, MAX_ROWS))
    )
    return Table(
        headings=("Fault", "From", "Until", "Goodput before", "During", "After"),
        rows=rows,
        caption=f"{label}: goodput of all queue pairs before, during and after each fault.",
        left_out=left_out(len(rows), count, "fault", "faults"),
    )


def _end(end_ps: int) -> Cell:
    return words("the end") if end_ps < 0 else number(end_ps, duration(end_ps))


def _goodput(rate_bps: int) -> Cell:
    return missing() if rate_bps < 0 else number(rate_bps, format_rate(rate_bps))


def _drops(run: Run) -> Table | None:
    drops = run.rows(DROPS)
    if drops is None:
        return None
    order = np.argsort(-drops["packets"], kind="stable")[:MAX_ROWS]
    ports, causes, packets = (drops[name][order].tolist() for name in ("port", "cause", "packets"))
    return Table(
        headings=("Link", "Cause", "Packets"),
        rows=tuple(
            (words(run.fabric.link_label(port) if run.fabric else str(port)), words(cause), number(lost, f"{lost:,}"))
            for port, cause, lost in zip(ports, causes, packets, strict=True)
        ),
        caption=f"{run.label}: ports with the most packets lost to faults.",
        left_out=left_out(len(order), len(drops["port"]), "row", "drops"),
    )
