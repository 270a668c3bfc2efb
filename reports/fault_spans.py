"""Faults of a run as figures show them: when each began and ended, and the ports that it was at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fabrictune.foundation.records import Columns
from fabrictune.reports import svg
from fabrictune.reports.blocks import duration
from fabrictune.reports.charts import Band
from fabrictune.reports.fabric_view import FabricView
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

FAULTS = select("faults", "description", "begin_ps", "end_ps")
ENDS = " -> "  # between the two ports of a link
MAX_SPANS = 64  # of one run that are drawn


@dataclass(frozen=True, kw_only=True)
class FaultSpan:
    """A fault, from its first beginning to its last end."""

    description: str
    begin_ps: int
    end_ps: int  # -1 where it never ends
    ports: tuple[int, ...]  # that leave through it, none where the fabric does not name them

    @property
    def hint(self) -> str:
        """Return what happened and when."""
        until = "until the end" if self.end_ps < 0 else f"to {duration(self.end_ps)}"
        return f"{self.description}, {duration(self.begin_ps)} {until}"


def fault_spans(run: Run) -> tuple[FaultSpan, ...]:
    """Return the faults of a run in the order of the record, at most MAX_SPANS; none where it had none."""
    faults = run.rows(FAULTS)
    if faults is None:
        return ()
    return tuple(_spans(faults, run.fabric))


def bands_of(spans: Sequence[FaultSpan]) -> list[Band]:
    """Return a band of time for each fault."""
    return [
        Band(low=span.begin_ps, high=span.end_ps if span.end_ps >= 0 else math.inf, hint=span.hint) for span in spans
    ]


def draw_cross(x: float, y: float, half: float, hint: str) -> Markup:
    """Return the mark of a fault at a link."""
    corners = (
        f"M{x - half:.1f} {y - half:.1f}l{2 * half:.1f} {2 * half:.1f}m0 {-2 * half:.1f}l{-2 * half:.1f} {2 * half:.1f}"
    )
    return svg.tag("path", svg.hint(hint), d=corners, class_="fault")


def _spans(faults: Columns, fabric: FabricView | None) -> list[FaultSpan]:
    rows = zip(*(faults[name][:MAX_SPANS].tolist() for name in FAULTS.columns), strict=True)
    return [
        FaultSpan(description=text, begin_ps=begin_ps, end_ps=end_ps, ports=_ports(text, fabric))
        for text, begin_ps, end_ps in rows
    ]


def _ports(description: str, fabric: FabricView | None) -> tuple[int, ...]:
    """Return the ports of what a description names: "link_down A:p -> B:q" or "switch_down A"."""
    _, _, name = description.partition(" ")
    if fabric is None:
        return ()
    begin, _, end = name.partition(ENDS)
    if end:
        return tuple(port for port in map(fabric.port_number.get, (begin, end)) if port is not None)
    return fabric.ports_of_node(name)
