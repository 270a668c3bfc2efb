"""Heat map of hosts: traffic between each pair, darker where it is more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration, format_rate
from fabrictune.reports import svg
from fabrictune.reports.blocks import Figure, Section, Table, left_out, number, plural, words
from fabrictune.reports.load_scale import step_of
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

LEFT, TOP = 220.0, 60.0  # room for names
MOST_SIDE, LEAST_SIDE = 96.0, 6.0  # of a cell
SIDE_WITH_VALUE = 60.0
MAX_ROWS = 64
RDMA_TRANSFERS = select(
    "rdma_transfers",
    "sender",
    "receiver",
    "queue_pairs",
    "size_bytes",
    "bandwidth_bps",
    "median_ns",
)
MAX_NAME = 30  # characters


def pair_map_section(runs: Sequence[Run]) -> Section | None:
    """Return a map for each case of each run between several pairs of hosts, or None."""
    figures = tuple(
        figure
        for run in runs
        if (table := run.table(RDMA_TRANSFERS)) is not None
        for figure in map(_draw, pair_maps(run.label, table))
    )
    if not figures:
        return None
    lead = "Rows send, columns receive; the darkest cell is the map's maximum. Pairs were measured one after another."
    return Section(anchor="pairs", title="Host pairs", lead=lead, blocks=figures)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairMap:
    """Traffic between each pair of hosts, in one case of a measurement."""

    title: str
    is_latency: bool  # then `values` are ns of a write, else bits a second
    senders: list[str]
    receivers: list[str]
    values: list[float]

    @property
    def hosts(self) -> list[str]:
        """The hosts, in the order in which they are named."""
        return list(dict.fromkeys([*self.senders, *self.receivers]))


def pair_maps(label: str, table: Columns) -> Iterator[PairMap]:
    """Yield a map for each case between several senders."""
    cases = zip(table["queue_pairs"].tolist(), table["size_bytes"].tolist(), strict=True)
    for queue_pairs, size_bytes in dict.fromkeys(cases):
        is_own = (table["queue_pairs"] == queue_pairs) & (table["size_bytes"] == size_bytes)
        own = {name: column[is_own] for name, column in table.items()}
        if len(set(own["sender"].tolist())) > 1:
            is_latency = not own["bandwidth_bps"].any()
            yield PairMap(
                title=f"{label}: {plural(queue_pairs, 'queue pair')}, writes of {format_bytes(size_bytes)}",
                is_latency=is_latency,
                senders=own["sender"].tolist(),
                receivers=own["receiver"].tolist(),
                values=own["median_ns" if is_latency else "bandwidth_bps"].tolist(),
            )


def _draw(pairs: PairMap) -> Figure:
    is_latency, values, hosts = pairs.is_latency, np.array(pairs.values), pairs.hosts
    senders, receivers = pairs.senders, pairs.receivers
    shown = [format_duration(value * PS_PER_NS) if is_latency else format_rate(value) for value in pairs.values]
    side = min(MOST_SIDE, max(LEAST_SIDE, (svg.WIDTH - LEFT - 8) / len(hosts)))
    place = {host: index for index, host in enumerate(hosts)}
    steps = step_of(values / max(float(np.max(values)), 1.0)).tolist()
    parts = [*_names(hosts, side)]
    for sender, receiver, step, value in zip(senders, receivers, steps, shown, strict=True):
        parts.extend(_cell(place[sender], place[receiver], side, step, value, f"{sender} to {receiver}: {value}"))
    measured, most = "median write latency" if is_latency else "bandwidth", shown[int(np.argmax(values))]
    caption = f"{pairs.title}: {measured}; maximum {most}."
    rows = zip(senders, receivers, values.tolist(), shown, strict=True)
    cells = tuple((words(near), words(far), number(value, text)) for near, far, value, text in rows)
    return Figure(
        drawing=svg.figure(TOP + side * len(hosts) + 8, caption, *parts),
        caption=caption,
        table=Table(
            headings=("From", "To", "Median" if is_latency else "Bandwidth"),
            rows=cells[:MAX_ROWS],
            left_out=left_out(min(MAX_ROWS, len(cells)), len(cells), "pair", "rdma_transfers"),
            is_folded=True,
        ),
    )


def _names(hosts: Sequence[str], side: float) -> Iterator[Markup]:
    for index, host in enumerate(hosts):
        middle = (index + 0.5) * side
        name = host if len(host) <= MAX_NAME else f"{host[: MAX_NAME - 1]}\u2026"
        yield svg.text(LEFT - 8, TOP + middle + 4, f"{index} {name}", class_="tick", anchor="end")
        yield svg.text(LEFT + middle, TOP - 8, f"{index}", class_="tick", anchor="middle")


def _cell(row: int, column: int, side: float, step: int, value: str, hint: str) -> Iterator[Markup]:
    x, y = LEFT + column * side, TOP + row * side
    yield svg.rectangle(x, y, side - 1, side - 1, f"fill-{step}", svg.hint(hint))
    if side >= SIDE_WITH_VALUE:
        yield svg.text(x + side / 2, y + side / 2 + 4, value, class_="tick", anchor="middle")
