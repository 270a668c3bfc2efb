"""Attribution of measured collectives' time: the parts of each, in the order of attribution."""

from collections.abc import Sequence

from markupsafe import Markup

from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.foundation.run_tables.collectives import ATTRIBUTED
from fabrictune.foundation.units import format_bytes, format_duration
from fabrictune.reports import svg
from fabrictune.reports.blocks import Cell, Figure, Section, Table, left_out, number, percent, shown_of, words
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

LEFT, ROW_HEIGHT, BAR_HEIGHT, TOP = 300.0, 24.0, 14.0, 44.0
MAX_ROWS = 64
PARTS = tuple(ATTRIBUTED)  # of a measured time, in the order in which it is shared out
ATTRIBUTION = select("attribution", "operation", "is_in_place", "size_bytes", "measured_ps", "ratio", *PARTS)


def attribution_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure for each run whose times were shared out, or None."""
    figures = tuple(_draw(run.label, table) for run in runs if (table := run.rows(ATTRIBUTION)) is not None)
    if not figures:
        return None
    lead = "Parts of the measured time in order: NIC time first; the rest is outside the network, or outside the model."
    return Section(anchor="attribution", title="Attribution of measured time", lead=lead, blocks=figures)


def _draw(label: str, table: Columns) -> Figure:
    """Return a bar of parts for each measurement."""
    num_rows = min(len(table["ratio"]), MAX_ROWS)
    width = svg.WIDTH - LEFT - 60
    parts: list[Markup] = []
    key_x = 0.0
    for place, column in enumerate(PARTS):
        name = _name(column)
        parts.append(svg.rectangle(key_x, TOP - 36, 12, 12, f"fill-{place}"))
        parts.append(svg.text(key_x + 18, TOP - 26, name, class_="tick"))
        key_x += 50 + 6.6 * len(name)
    for row in range(num_rows):
        y, x = TOP + ROW_HEIGHT * row, LEFT
        parts.append(svg.text(0, y + 12, _title(table, row), class_="tier"))
        for place, column in enumerate(PARTS):
            share = _share(table, column, row)
            hint = svg.hint(f"{_name(column)}: {percent(share)}")
            parts.append(svg.rectangle(x, y, share * width, BAR_HEIGHT, f"fill-{place}", hint))
            x += share * width
    caption = f"{label}: {shown_of(num_rows, len(table['ratio']), 'measurement')}, each attributed to its causes."
    drawing = svg.figure(TOP + ROW_HEIGHT * num_rows + 6, caption, *parts)
    return Figure(drawing=drawing, caption=caption, table=_table(table, num_rows))


def _table(table: Columns, num_rows: int) -> Table:
    headings = ("Measurement", "Time", "Over model", *(_name(column).capitalize() for column in PARTS))
    rows = tuple(_row(table, row) for row in range(num_rows))
    return Table(
        headings=headings,
        rows=rows,
        left_out=left_out(num_rows, len(table["ratio"]), "measurement", "attribution"),
    )


def _row(table: Columns, row: int) -> tuple[Cell, ...]:
    shares = [_share(table, column, row) for column in PARTS]
    measured_ps, ratio = float(table["measured_ps"][row]), float(table["ratio"][row])
    return (
        words(_title(table, row)),
        number(measured_ps, format_duration(measured_ps)),
        number(ratio, format_metric(ratio, "ratio")),
        *(number(share, percent(share)) for share in shares),
    )


def _title(table: Columns, row: int) -> str:
    place = ", in place" if table["is_in_place"][row] else ""
    return f"{str(table['operation'][row]).replace('_', ' ')}, {format_bytes(int(table['size_bytes'][row]))}{place}"


def _share(table: Columns, column: str, row: int) -> float:
    measured_ps = float(table["measured_ps"][row])
    return float(table[column][row]) / measured_ps if measured_ps > 0 else 0.0


def _name(column: str) -> str:
    return column.removesuffix("_ps").replace("_", " ")
