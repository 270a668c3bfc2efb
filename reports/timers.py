"""Link flaps under given timers: model, engine and device in one table, and a real job that stalled."""

from collections.abc import Sequence

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports.blocks import Cell, Section, Table, duration, left_out, missing, number, words
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

ACCOUNTS = ("", "simulated_", "measured_")  # the model's times, the engine's, a device's
TIMERS = select(
    "timers",
    "profile",
    "confidence",
    "timeout",
    "retries",
    "flap_ns",
    *(f"{account}{what}_ns" for account in ACCOUNTS for what in ("gives_up", "stall")),
)
FLAPS = select("flaps", "down_ns", "tcp_resumes_ns", "stall_ns")
MAX_ROWS = 60


def timers_section(runs: Sequence[Run]) -> Section | None:
    """Return the timers that each run tried and the flaps of its job, or None."""
    tables = [_timers(run.label, table) for run in runs if (table := run.table(TIMERS)) is not None]
    tables += [_flaps(run.label, table) for run in runs if (table := run.table(FLAPS)) is not None]
    if not tables:
        return None
    lead = (
        "Traffic resumes with the first retransmission after the link is up; after the last one, the queue pair fails."
    )
    return Section(anchor="timers", title="Link flaps and timers", lead=lead, blocks=tuple(tables))


def _timers(label: str, timers: Columns) -> Table:
    columns = {name: values[:MAX_ROWS].tolist() for name, values in timers.items()}
    rows = tuple(
        (
            words(columns["profile"][row]),
            words(columns["confidence"][row]),
            number(columns["timeout"][row], str(columns["timeout"][row])),
            number(columns["retries"][row], str(columns["retries"][row])),
            *(_time(columns[f"{account}gives_up_ns"][row]) for account in ACCOUNTS),
            _time(columns["flap_ns"][row]),
            *(_time(columns[f"{account}stall_ns"][row]) for account in ACCOUNTS),
        )
        for row in range(len(columns["profile"]))
    )
    outcomes = ("Retry exceeded: model", "simulated", "measured", "Flap", "Stall: model", "simulated", "measured")
    return Table(
        headings=("Profile", "Source", "Timeout", "Retries", *outcomes),
        rows=rows,
        caption=f"{label}: time to retry exceeded on a dead link, and stall after a flap.",
        left_out=left_out(len(rows), len(timers["profile"]), "row", "timers"),
    )


def _flaps(label: str, flaps: Columns) -> Table:
    times = (flaps[name][:MAX_ROWS].tolist() for name in ("down_ns", "tcp_resumes_ns", "stall_ns"))
    rows = tuple(tuple(_time(time_ns) for time_ns in row) for row in zip(*times, strict=True))
    return Table(
        headings=("Link down", "TCP retransmits at", "Job stalled for"),
        rows=rows,
        caption=f"{label}: flaps of a real job's link.",
        left_out=left_out(len(rows), len(flaps["down_ns"]), "flap", "flaps"),
    )


def _time(time_ns: float) -> Cell:
    """Return a time; one that never came, or was not measured, is negative in the record."""
    return missing() if time_ns < 0 else number(time_ns, duration(time_ns * PS_PER_NS))
