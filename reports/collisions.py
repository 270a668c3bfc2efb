"""Oversubscribed links: those on which the hash puts too many queue pairs, and receivers that too many send to."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.units import format_rate
from fabrictune.reports.blocks import MISSING, Cell, Section, Table, left_out, number, percent, words
from fabrictune.reports.record_view import LOADS, Run
from fabrictune.reports.selection import select

COLLISIONS = select("collisions", "port", "qp")
MAX_ROWS = 10
MAX_QUEUE_PAIRS = 8  # named in a row


def collisions_section(runs: Sequence[Run]) -> Section | None:
    """Return tables of colliding links and of overloaded receivers for each run that looked for them, or None."""
    tables = tuple(table for run in runs for table in (collision_table(run), receiver_table(run)) if table)
    if not tables:
        return None
    lead = "Links between switches that the hash oversubscribes, and receivers that too many send to at once."
    return Section(anchor="collisions", title="Oversubscribed links", lead=lead, blocks=tables)


def collision_table(run: Run) -> Table | None:
    """Return one row for each link to a switch with colliding queue pairs, the most overloaded first.

    None where the run did not look for them.
    """
    return _table(run, "oversubscribed links", is_to_nic=False)


def receiver_table(run: Run) -> Table | None:
    """Return one row for each overloaded link to a NIC, where no choice of path helps; None where there is none."""
    table = _table(run, "overloaded receivers (incast)", is_to_nic=True)
    return table if table and table.rows else None


def _table(run: Run, what: str, *, is_to_nic: bool) -> Table | None:
    collisions, loads = run.table(COLLISIONS), run.table(LOADS)
    if collisions is None or run.fabric is None:
        return None
    is_own_X = (run.fabric.port_nic_P[run.fabric.port_peer_P[collisions["port"]]] >= 0) == is_to_nic
    port_X, queue_pair_X = collisions["port"][is_own_X], collisions["qp"][is_own_X]
    ports, count = np.unique(port_X, return_counts=True)
    order = np.argsort(port_X, kind="stable")
    members = np.split(queue_pair_X[order], np.cumsum(count)[:-1]) if len(ports) else []
    demand_bps = loads["demand_bps"][ports] if loads is not None else np.zeros(len(ports))
    load = demand_bps / run.fabric.port_rate_bps_P[ports]
    ranked = np.lexsort((ports, -count, -load))[:MAX_ROWS].tolist()
    rows = tuple(
        _collision_row(run, int(ports[row]), np.sort(members[row]).tolist(), float(demand_bps[row]), float(load[row]))
        for row in ranked
    )
    return Table(
        caption=f"{run.label}: {what if rows else f'no {what}'}",
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
