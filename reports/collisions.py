"""ECMP collisions: the links on which more queue pairs meet than fit, and which queue pairs they are."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.units import format_rate
from fabrictune.reports.blocks import MISSING, Cell, Section, Table, left_out, merge_alike, number, percent, words
from fabrictune.reports.record_view import LOADS, Run
from fabrictune.reports.selection import select

COLLISIONS = select("collisions", "port", "qp")
MAX_ROWS = 10
MAX_QUEUE_PAIRS = 8  # named in a row


def collisions_section(runs: Sequence[Run]) -> Section | None:
    """Return a table of colliding links for each run that looked for them, or None."""
    tables = merge_alike((run.label, table) for run in runs if (table := collision_table(run)) is not None)
    if not tables:
        return None
    lead = "Links that hash collisions oversubscribe, and their queue pairs."
    return Section(anchor="collisions", title="ECMP collisions", lead=lead, blocks=tuple(tables))


def collision_table(run: Run) -> Table | None:
    """Return one row for each port with colliding queue pairs, the most overloaded first; None without collisions."""
    collisions, loads = run.table(COLLISIONS), run.table(LOADS)
    if collisions is None or run.fabric is None:
        return None
    ports, count = np.unique(collisions["port"], return_counts=True)
    order = np.argsort(collisions["port"], kind="stable")
    members = np.split(collisions["qp"][order], np.cumsum(count)[:-1]) if len(ports) else []
    demand_bps = loads["demand_bps"][ports] if loads is not None else np.zeros(len(ports))
    load = demand_bps / run.fabric.port_rate_bps_P[ports]
    ranked = np.lexsort((ports, -count, -load))[:MAX_ROWS].tolist()
    rows = tuple(
        _collision_row(run, int(ports[row]), np.sort(members[row]).tolist(), float(demand_bps[row]), float(load[row]))
        for row in ranked
    )
    return Table(
        caption=f"{run.label}: {'no oversubscribed links' if not rows else 'oversubscribed links'}",
        headings=("Link", "Queue pairs", "Demand", "Rate", "Load", "Which"),
        rows=rows,
        left_out=left_out(len(rows), len(ports), "link", "collisions"),
    )


def _collision_row(run: Run, port: int, queue_pairs: list[int], demand_bps: float, load: float) -> tuple[Cell, ...]:
    assert run.fabric is not None, "links are named by the fabric"
    rate_bps = int(run.fabric.port_rate_bps_P[port])
    named = ", ".join(str(queue_pair) for queue_pair in queue_pairs[:MAX_QUEUE_PAIRS])
    more = len(queue_pairs) - MAX_QUEUE_PAIRS
    return (
        words(run.fabric.link_label(port)),
        number(len(queue_pairs), f"{len(queue_pairs):,}"),
        number(demand_bps, format_rate(demand_bps) if demand_bps else MISSING),
        number(rate_bps, format_rate(rate_bps)),
        number(load, percent(load) if demand_bps else MISSING, tone="bad" if load > 1 else ""),
        words(f"{named} and {more:,} more" if more > 0 else named),
    )
