"""Map of a large fabric's links: a row a switch, a cell a link, a panel a direction, in the colour of the load.

Rows are in the order of rails, then of ToR sets, so that a rail or a set in trouble is a band; cells are in the order
of a switch's ports, so that a link that the hash never takes is a column.

Shapes: P ports, R rows, L cells of a row; a cell without a link has load nan.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.reports import svg
from fabrictune.reports.aggregation import node_rails
from fabrictune.reports.blocks import Figure, percent, plural, shortened
from fabrictune.reports.fabric_view import FabricView
from fabrictune.reports.fault_spans import draw_cross
from fabrictune.reports.link_load import LinkLoad
from fabrictune.reports.load_scale import OVERLOADED, legend, step_of
from fabrictune.topology.fabric import NO_RAIL

LEFT, GAP, TOP, TITLE = 92.0, 56.0, 30.0, 34.0
MAX_CELLS = 6_144  # of a panel; of a larger one the switches with the highest load are drawn
MAX_ROWS = 192
MAX_NAME = 12  # characters of a switch
MAX_ACROSS = 256  # cells of a row; in a longer one a cell is the highest of several links
MAX_HEIGHT = 560.0
CELL_WIDTHS, CELL_HEIGHTS = (1.6, 26.0), (3.0, 12.0)
NAME_HEIGHT = 10.0  # of a row with its name
RAIL_ROOM = 13.0  # height of a name
SPACED = 5.0  # width from which cells have a gap between them
MAX_HINTS = 128  # cells of a panel with a hint, the most loaded
MAX_CROSSES = 64
NO_PORT = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The links between two tiers, by the switches of one of them."""

    outward: str  # link class of the ports that leave the rows' switches
    inward: str
    node_R: IntArray
    port_RL: IntArray  # of the rows' switches, NO_PORT where there is none
    num_left_out: int  # switches


def draw_link_map(load: LinkLoad) -> Figure:
    """Return the map of one run's links."""
    parts: list[Markup] = [
        svg.text(0, 14, load.label, class_="tier"),
        legend(max(LEFT, 24 + 7.4 * len(load.label)), 14, load.measure),
    ]
    y, notes = TOP, list[str]()
    rails_N = node_rails(load.fabric)
    for rows in _tiers(load, rails_N):
        drawn, height = _draw_rows(load, rows, rails_N, y + TITLE)
        parts += drawn
        y += TITLE + height
        if rows.num_left_out:
            notes.append(f"{rows.outward}: {plural(rows.num_left_out, 'more row')} with lower loads not drawn.")
    caption = " ".join(
        (f"{load.label}: a row a switch, by rail, then ToR set; a cell a link, in the order of its ports.", *notes)
    )
    return Figure(drawing=svg.figure(y + 10, caption, *parts), caption=caption)


def _tiers(load: LinkLoad, rails_N: IntArray) -> Iterator[Rows]:
    """Yield the links between each two tiers, the lowest first: by the lower switches, of hosts by the upper ones."""
    fabric, classes = load.fabric, load.fabric.link_classes()
    tier_P, peer_tier_P = fabric.node_tier_N[fabric.port_node_P], fabric.node_tier_N[fabric.peer_node_P]
    pairs = sorted({(int(low), int(high)) for low, high in np.stack([tier_P, peer_tier_P], axis=1) if low <= high})
    for low, high in pairs:
        own, other = (high, low) if fabric.is_host_N[fabric.node_tier_N == low].all() else (low, high)
        ports = np.flatnonzero((tier_P == own) & (peer_tier_P == other))
        names = (f"{fabric.tier_name(one)} → {fabric.tier_name(two)}" for one, two in ((own, other), (other, own)))
        outward, inward = names
        assert {outward, inward} <= set(classes), "a class that the fabric has not"
        yield _rows(load, ports, rails_N, outward, inward)


def _rows(load: LinkLoad, ports: IntArray, rails_N: IntArray, outward: str, inward: str) -> Rows:
    """Return ports as rows of their switches; of too many those with the highest loads."""
    fabric = load.fabric
    node_P = fabric.port_node_P[ports]
    nodes, row_P, count_R = np.unique(node_P, return_inverse=True, return_counts=True)
    first_P = np.concatenate([[0], np.cumsum(count_R)[:-1]])
    order_P = np.argsort(row_P, kind="stable")
    port_RL = np.full((len(nodes), int(count_R.max())), NO_PORT)
    port_RL[row_P[order_P], np.arange(len(ports)) - first_P[row_P[order_P]]] = ports[order_P]
    highest_R = np.nanmax(_loads(load, port_RL), axis=1)
    num_rows = min(len(nodes), MAX_ROWS, max(1, MAX_CELLS // min(port_RL.shape[1], MAX_ACROSS)))
    kept = np.sort(np.argsort(-highest_R, kind="stable")[:num_rows])
    by_place = kept[np.lexsort((nodes[kept], fabric.node_group_N[nodes[kept]], rails_N[nodes[kept]]))]
    return Rows(
        outward=outward,
        inward=inward,
        node_R=nodes[by_place],
        port_RL=port_RL[by_place],
        num_left_out=len(nodes) - num_rows,
    )


def _loads(load: LinkLoad, port_RL: IntArray, *, is_inward: bool = False) -> FloatArray:
    """Return the loads of a panel's links, nan where there is none."""
    own_RL = np.maximum(port_RL, 0)
    load_RL = load.load_P[load.fabric.port_peer_P[own_RL] if is_inward else own_RL]
    return np.where(port_RL == NO_PORT, np.nan, load_RL)


def _draw_rows(load: LinkLoad, rows: Rows, rails_N: IntArray, top: float) -> tuple[list[Markup], float]:
    """Return both directions side by side with the rows' names, and their height."""
    num_rows, num_across = len(rows.node_R), min(rows.port_RL.shape[1], MAX_ACROSS)
    panels = [(rows.outward, False), *([(rows.inward, True)] if rows.inward != rows.outward else [])]
    room = (svg.WIDTH - LEFT - GAP * (len(panels) - 1)) / len(panels)
    wide = min(max(room / num_across, CELL_WIDTHS[0]), CELL_WIDTHS[1])
    tall = min(max(MAX_HEIGHT / num_rows, CELL_HEIGHTS[0]), CELL_HEIGHTS[1])
    parts = list(_names(load.fabric, rows, rails_N, top, tall))
    for place, (name, is_inward) in enumerate(panels):
        x, load_RL = LEFT + place * (room + GAP), _loads(load, rows.port_RL, is_inward=is_inward)
        parts.append(svg.text(x, top - 8, f"{name}: {_summary(load_RL)}", class_="tier"))
        box = {"x": x, "y": top, "wide": wide, "tall": tall}
        parts += _cells(load, rows, load_RL, rails_N[rows.node_R], is_inward=is_inward, **box)
    return parts, num_rows * tall


def _summary(load_RL: FloatArray) -> str:
    loads = load_RL[~np.isnan(load_RL)]
    idle, over = int((loads == 0).sum()), int((step_of(loads) >= OVERLOADED).sum())
    return f"{plural(len(loads), 'link')}, {idle:,} idle, {over:,} over 100 %"


def _cells(
    load: LinkLoad,
    rows: Rows,
    load_RL: FloatArray,
    rail_R: IntArray,
    *,
    is_inward: bool,
    x: float,
    y: float,
    wide: float,
    tall: float,
) -> Iterator[Markup]:
    """Yield one path for each step and rail, then the most loaded cells with hints, then the crosses of faults."""
    links = -(-load_RL.shape[1] // MAX_ACROSS)  # in a cell
    shown_RL = _highest_of_each(load_RL, links)
    step_RL = np.where(np.isnan(shown_RL), -1, step_of(np.nan_to_num(shown_RL)))
    share = 0.86 if wide >= SPACED else 1.0
    place = {"transform": f"translate({x:.1f} {y:.1f}) scale({wide:.3f} {tall:.3f})"}
    rails = np.unique(rail_R).tolist()
    for step, rail in product(np.unique(step_RL[step_RL >= 0]).tolist(), rails):
        row_C, across_C = np.nonzero((step_RL == step) & (rail_R == rail)[:, None])
        if len(row_C):
            cell = f"h{share:g}v.86h-{share:g}z"
            drawn = "".join(f"M{at} {row}{cell}" for row, at in zip(row_C.tolist(), across_C.tolist(), strict=True))
            hints = [svg.hint(f"rail {rail}")] if len(rails) > 1 and rail != NO_RAIL else []
            yield svg.tag("path", *hints, d=drawn, class_=f"fill-{step}", **place)
    hottest = np.argsort(-np.nan_to_num(shown_RL), axis=None, kind="stable")[:MAX_HINTS]
    for row, across in zip(*(ends.tolist() for ends in np.unravel_index(hottest, shown_RL.shape)), strict=True):
        if step_RL[row, across] > 0:
            column = across * links + int(np.nanargmax(load_RL[row, across * links : (across + 1) * links]))
            port = _port(load, rows, row, column, is_inward=is_inward)
            hint = svg.hint(f"{load.fabric.link_label(port)} {percent(float(shown_RL[row, across]))}")
            left, upper = x + across * wide, y + row * tall
            yield svg.rectangle(left, upper, wide * share, tall * 0.86, f"fill-{step_RL[row, across]}", hint)
    yield from _crosses(load, rows, links, is_inward=is_inward, x=x, y=y, wide=wide, tall=tall)


def _crosses(
    load: LinkLoad, rows: Rows, links: int, *, is_inward: bool, x: float, y: float, wide: float, tall: float
) -> Iterator[Markup]:
    faulty = np.isin(rows.port_RL, list(load.fault_of_port))
    for row, column in np.argwhere(faulty)[:MAX_CROSSES].tolist():
        port = _port(load, rows, row, column, is_inward=is_inward)
        middle = x + (column // links + 0.5) * wide, y + (row + 0.5) * tall
        yield draw_cross(*middle, 4.0, load.fault_of_port[port].hint)


def _port(load: LinkLoad, rows: Rows, row: int, column: int, *, is_inward: bool) -> int:
    port = int(rows.port_RL[row, column])
    return int(load.fabric.port_peer_P[port]) if is_inward else port


def _highest_of_each(load_RL: FloatArray, links: int) -> FloatArray:
    """Return the highest of every so many links of a row."""
    if links == 1:
        return load_RL
    missing = -load_RL.shape[1] % links
    padded_RL = np.pad(load_RL, ((0, 0), (0, missing)), constant_values=np.nan)
    grouped = np.where(np.isnan(padded_RL), -1.0, padded_RL).reshape(len(load_RL), -1, links).max(axis=2)
    return np.where(grouped < 0, np.nan, grouped)


def _names(fabric: FabricView, rows: Rows, rails_N: IntArray, top: float, tall: float) -> Iterator[Markup]:
    """Yield the switches' names where they fit, else those of their rails."""
    if tall >= NAME_HEIGHT:
        for row, node in enumerate(rows.node_R.tolist()):
            yield svg.text(
                LEFT - 8,
                top + (row + 0.5) * tall + 4,
                shortened(fabric.node_name_N[node], MAX_NAME),
                class_="tick",
                anchor="end",
            )
        return
    free = 0.0
    for row, name in _changes(["" if rail == NO_RAIL else f"rail {rail}" for rail in rails_N[rows.node_R].tolist()]):
        y = top + row * tall
        yield svg.line(LEFT - 8, y, svg.WIDTH, y, "grid")
        if y >= free:
            yield svg.text(LEFT - 8, y + RAIL_ROOM - 3, name, class_="tick", anchor="end")
            free = y + RAIL_ROOM


def _changes(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each name with the row from which on it holds."""
    for row, name in enumerate(names):
        if name and (row == 0 or names[row - 1] != name):
            yield row, name
