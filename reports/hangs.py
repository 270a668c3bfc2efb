"""Jobs that stand still: the process that the others wait for, who waits for whom, and the ports behind it."""

from collections.abc import Sequence

from fabrictune.foundation.records import Columns
from fabrictune.foundation.wording import milliseconds
from fabrictune.reports.blocks import Cell, Section, Table, left_out, missing, number, words
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

PROCESSES = select("hang_processes", "rank", "host", "pid", "gpu", "is_blamed", "waits", "signs")
ENDS = ("low", "expected", "high")
HEALTHY = select(
    "hang_healthy",
    *("subject", "basis", "assumption", "missing"),
    *(f"{name}_{end}_ns" for name in ("request", "gain", "step") for end in ENDS),
)
WAITS = select("hang_waits", "waiter", "blocker", "group", "number", "source")
PORTS = select("hang_ports", "link", "num_hung", "num_others", "counters")
MAX_ROWS = 64
UNKNOWN = -1


def hangs_section(runs: Sequence[Run]) -> Section | None:
    """Return the tables of each diagnosed job, or None."""
    blocks: list[Table] = []
    for run in runs:
        for selection, table in ((HEALTHY, _healthy), (PROCESSES, _processes), (WAITS, _waits), (PORTS, _ports)):
            if (rows := run.rows(selection)) is not None:
                blocks.append(table(run.label, rows))
    if not blocks:
        return None
    lead = "Who keeps a job from going on, from what each process issued and completed; blamed processes first."
    return Section(anchor="hangs", title="Hangs", lead=lead, blocks=tuple(blocks))


def _healthy(label: str, healthy: Columns) -> Table:
    """Return what a step gains once each named process or port is healthy, and on what that rests."""
    rows = tuple(
        (
            words(str(healthy["subject"][row])),
            *(_interval_of(healthy, name, row) for name in ("gain", "request", "step")),
            *(words(str(healthy[name][row])) for name in ("basis", "assumption", "missing")),
        )
        for row in range(len(healthy["subject"]))
    )
    return Table(
        caption=f"{label}: once it is healthy",
        headings=(
            "Process or port",
            "Step shorter by",
            "Request",
            "Whole step",
            "By",
            "Assumed",
            "Not in the evidence",
        ),
        rows=rows,
    )


def _interval_of(columns: Columns, name: str, row: int) -> Cell:
    """Return milliseconds with the ends of nine cases of ten."""
    low, expected, high = (float(columns[f"{name}_{end}_ns"][row]) / 1e6 for end in ENDS)
    if expected < 0:
        return missing()
    return number(expected, f"{milliseconds(expected)} ms ({milliseconds(low)} to {milliseconds(high)})")


def _processes(label: str, processes: Columns) -> Table:
    """Return the processes, blamed ones first, then those that wait, by rank."""
    total = len(processes["rank"])
    order = sorted(
        range(total),
        key=lambda row: (
            not processes["is_blamed"][row],
            not processes["signs"][row],
            not processes["waits"][row],
            processes["rank"][row],
        ),
    )
    rows = tuple(
        (
            *(_number_of(processes, name, row) for name in ("rank", "pid", "gpu")),
            words(str(processes["host"][row])),
            words("held up by it" if processes["is_blamed"][row] else "waits" if processes["waits"][row] else ""),
            words(str(processes["signs"][row])),
        )
        for row in order[:MAX_ROWS]
    )
    return Table(
        caption=f"{label}: processes",
        headings=("Rank", "Process", "GPU", "Host", "State", "Signs"),
        rows=rows,
        left_out=left_out(len(rows), total, "process", "hang_processes"),
    )


def _waits(label: str, waits: Columns) -> Table:
    total = len(waits["waiter"])
    rows = tuple(
        (
            *(words(str(waits[name][row])) for name in ("waiter", "blocker", "group")),
            _number_of(waits, "number", row),
            words(str(waits["source"][row])),
        )
        for row in range(min(total, MAX_ROWS))
    )
    return Table(
        caption=f"{label}: who waits for whom",
        headings=("Waits", "For", "In group", "For request", "Source"),
        rows=rows,
        left_out=left_out(len(rows), total, "wait", "hang_waits"),
    )


def _ports(label: str, ports: Columns) -> Table:
    total = len(ports["link"])
    rows = tuple(
        (
            words(str(ports["link"][row])),
            *(_number_of(ports, name, row) for name in ("num_hung", "num_others")),
            words(str(ports["counters"][row])),
        )
        for row in range(min(total, MAX_ROWS))
    )
    return Table(
        caption=f"{label}: ports on the way, the most suspect first",
        headings=("Link", "Hung queue pairs", "Others", "Counters"),
        rows=rows,
        left_out=left_out(len(rows), total, "port", "hang_ports"),
    )


def _number_of(columns: Columns, name: str, row: int) -> Cell:
    value = int(columns[name][row])
    return missing() if value == UNKNOWN else number(value, f"{value:,}" if name.startswith("num") else str(value))
