"""Heat map of hosts: each pair in the colour of its gap to the best, so that a slow host among equals stands out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration, format_rate
from fabrictune.reports import svg
from fabrictune.reports.blocks import Cell, Figure, Section, Table, left_out, missing, number, percent, plural, words
from fabrictune.reports.load_scale import key
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

LEFT, TOP = 220.0, 60.0  # room for names
MOST_SIDE = 96.0  # of a cell
SIDE_WITH_VALUE = 60.0
MAX_ROWS = 64
MAX_HOSTS = 64  # drawn: of more, those with the slowest pairs
GAPS = (0.02, 0.05, 0.1, 0.2, 0.5)  # upper ends of steps 1 to 5; step 6 is above them all, step 0 was not measured
GAP_NAMES = ("not measured", "to 2 %", "to 5 %", "to 10 %", "to 20 %", "to 50 %", "more")
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
ROUNDING = 1e-9  # a gap of exactly 2 % is within 2 %


def pair_map_section(runs: Sequence[Run]) -> Section | None:
    """Return a map for each case of each run between several pairs of hosts, or None."""
    figures = tuple(
        figure
        for run in runs
        if _has_senders(run) and (table := run.table(RDMA_TRANSFERS)) is not None
        for figure in map(_draw, pair_maps(run.label, table))
    )
    if not figures:
        return None
    lead = "Rows send, columns receive; colour: the gap to the map's best pair. Pairs were measured one after another."
    return Section(anchor="pairs", title="Host pairs", lead=lead, blocks=figures)


def _has_senders(run: Run) -> bool:
    """Return whether several hosts sent; others than these are no map, and their table stays unread."""
    senders = run.record.tables.get(RDMA_TRANSFERS.table, {}).get("sender", ())
    return len(set(map(str, senders))) > 1


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


def gaps_to_best(pairs: PairMap) -> FloatArray:
    """Return how far each pair is from the best: below its bandwidth, above its latency; nan where not measured."""
    values = np.array(pairs.values, np.float64)
    values[values <= 0] = np.nan
    if np.isnan(values).all():
        return values
    return values / np.nanmin(values) - 1 if pairs.is_latency else 1 - values / np.nanmax(values)


def _draw(pairs: PairMap) -> Figure:
    gaps, shown, hosts = gaps_to_best(pairs), _shown_values(pairs), _drawn_hosts(pairs)
    side = min(MOST_SIDE, (svg.WIDTH - LEFT - 8) / len(hosts))
    place = {host: index for index, host in enumerate(hosts)}
    steps = np.where(np.isnan(gaps), 0, 1 + np.searchsorted(np.array(GAPS), gaps - ROUNDING)).tolist()
    parts = [key(0, 14, "gap to the best pair", GAP_NAMES), *_names(hosts, side)]
    for sender, receiver, step, value in zip(pairs.senders, pairs.receivers, steps, shown, strict=True):
        if sender in place and receiver in place:
            parts.extend(_cell(place[sender], place[receiver], side, step, value, f"{sender} to {receiver}: {value}"))
    caption = _caption(pairs, gaps, shown, len(hosts))
    drawing = svg.figure(TOP + side * len(hosts) + 8, caption, *parts)
    return Figure(drawing=drawing, caption=caption, table=_slowest(pairs, gaps, shown))


def _shown_values(pairs: PairMap) -> list[str]:
    if pairs.is_latency:
        return [format_duration(value * PS_PER_NS) for value in pairs.values]
    return [format_rate(value) if value > 0 else "not measured" for value in pairs.values]


def _drawn_hosts(pairs: PairMap) -> list[str]:
    """Return the hosts of the map in order; of more than MAX_HOSTS those whose median gap is largest."""
    hosts, gaps = pairs.hosts, gaps_to_best(pairs)
    if len(hosts) <= MAX_HOSTS:
        return hosts
    senders, receivers = np.array(pairs.senders, object), np.array(pairs.receivers, object)
    median = {host: float(np.median(gaps[(senders == host) | (receivers == host)])) for host in hosts}
    slowest = sorted(hosts, key=lambda host: (not np.isnan(median[host]), -median[host]))[:MAX_HOSTS]
    return [host for host in hosts if host in set(slowest)]


def _caption(pairs: PairMap, gaps: FloatArray, shown: list[str], num_drawn: int) -> str:
    measured = "median write latency" if pairs.is_latency else "bandwidth"
    caption = f"{pairs.title}: {measured}"
    if not np.isnan(gaps).all():
        best, slowest = int(np.nanargmin(gaps)), int(np.nanargmax(gaps))
        more = "more" if pairs.is_latency else "less"
        caption += f", best {shown[best]}; slowest {pairs.senders[slowest]} to {pairs.receivers[slowest]}"
        caption += f", {shown[slowest]}, {percent(float(gaps[slowest]))} {more}"
    if num_drawn < len(pairs.hosts):
        caption += f". Drawn: the {num_drawn} of {plural(len(pairs.hosts), 'host')} whose pairs are slowest"
    return f"{caption}."


def _slowest(pairs: PairMap, gaps: FloatArray, shown: list[str]) -> Table:
    """Return the pairs that were not measured, then the slowest first."""
    order = np.lexsort((-np.nan_to_num(gaps), ~np.isnan(gaps)))[:MAX_ROWS].tolist()
    return Table(
        headings=("From", "To", "Median" if pairs.is_latency else "Bandwidth", "Gap to the best"),
        rows=tuple(
            (
                words(pairs.senders[row]),
                words(pairs.receivers[row]),
                number(pairs.values[row], shown[row]),
                _gap(float(gaps[row])),
            )
            for row in order
        ),
        left_out=left_out(len(order), len(pairs.values), "pair", "rdma_transfers"),
    )


def _gap(gap: float) -> Cell:
    return missing() if np.isnan(gap) else number(gap, percent(gap))


def _names(hosts: Sequence[str], side: float) -> Iterator[Markup]:
    every = -(-int(svg.LETTER_WIDTH * (len(str(len(hosts) - 1)) + 1)) // int(side))  # columns that a number takes
    for index, host in enumerate(hosts):
        middle = (index + 0.5) * side
        name = host if len(host) <= MAX_NAME else f"{host[: MAX_NAME - 1]}\u2026"
        yield svg.text(LEFT - 8, TOP + middle + 4, f"{index} {name}", class_="tick", anchor="end")
        if index % every == 0:
            yield svg.text(LEFT + middle, TOP - 8, f"{index}", class_="tick", anchor="middle")


def _cell(row: int, column: int, side: float, step: int, value: str, hint: str) -> Iterator[Markup]:
    x, y = LEFT + column * side, TOP + row * side
    yield svg.rectangle(x, y, side - 1, side - 1, f"fill-{step}", svg.hint(hint))
    if side >= SIDE_WITH_VALUE:
        yield svg.text(x + side / 2, y + side / 2 + 4, value, class_="tick", anchor="middle")
