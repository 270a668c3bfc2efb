"""The fabric drawn tier over tier, hosts at the foot, every link in the colour of its load.

The busier direction of a link gives it its colour; idle links stay faint and the busiest are drawn last, so that a
collision is never hidden beneath quiet neighbours.

Shapes: B boxes and U bundles as in `folding`; P ports.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray
from fabrictune.reports import svg
from fabrictune.reports.aggregation import Folded, fold
from fabrictune.reports.blocks import Figure, Section, percent, plural
from fabrictune.reports.fault_spans import draw_cross
from fabrictune.reports.link_load import LinkLoad, carried_load, distinct_loads, offered_load
from fabrictune.reports.link_map import draw_link_map
from fabrictune.reports.load_scale import OVERLOADED, legend, step_of
from fabrictune.reports.record_view import Run
from fabrictune.topology.fabric import NO_GROUP

LEFT = 96.0  # of the boxes: room for the tiers' names
TOP = 40.0
ROW_HEIGHT = 118.0
BOX_HEIGHT = 18.0
MAX_BOX_WIDTH = 104.0
BOX_SHARE = 0.8  # of its slot that a box fills
GROUP_GAP = 0.7  # of a slot, between groups
CHARACTER_WIDTH = 5.7  # of a box's name
PARALLEL_SHARE = 0.6  # of a box's width over which links that join the same two boxes spread
LABEL_CHARACTER_WIDTH = 7.4  # of a run's label
MAX_BRACKETS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawingLayout:
    """Positions of the boxes of a folded fabric."""

    folded: Folded
    left_B: FloatArray
    width_B: FloatArray
    y_B: FloatArray  # of its upper edge
    tiers: tuple[int, ...]  # highest first

    @property
    def centre_B(self) -> FloatArray:
        """Points where links meet the boxes."""
        return self.left_B + self.width_B / 2

    @property
    def height(self) -> float:
        """Of the whole drawing, with room for brackets at the foot."""
        return TOP + ROW_HEIGHT * (len(self.tiers) - 1) + BOX_HEIGHT + 34


def fabric_section(runs: Sequence[Run]) -> Section | None:
    """Return one drawing for each run that has a fabric and loads, or None.

    A fabric too large for its links to be drawn has a map of its links, and the drawing of bundles on request.
    """
    loads = distinct_loads([load for run in runs if (load := offered_load(run) or carried_load(run)) is not None])
    if not loads:
        return None
    blocks: list[Figure] = []
    for load in loads:
        folded = fold(load.fabric)
        if folded.folded_by:
            blocks.append(draw_link_map(load))
        blocks.append(draw_fabric(load, folded))
    lead = "Link colour: load of the busier direction, on a map of each direction. A cross marks a link with a fault."
    return Section(anchor="fabric", title="Fabric", lead=lead, blocks=tuple(blocks))


def draw_fabric(load: LinkLoad, folded: Folded) -> Figure:
    """Return the drawing of one run's fabric, folded where links are drawn as bundles."""
    plan = lay_out_drawing(folded)
    caption = _caption(load, plan.folded)
    drawing = svg.figure(
        plan.height,
        caption,
        svg.text(0, 14, load.label, class_="tier"),
        legend(max(LEFT, 24 + LABEL_CHARACTER_WIDTH * len(load.label)), 14, load.measure),
        *_draw_bundles(plan, load),
        *_draw_faults(plan, load),
        *_draw_boxes(plan),
        *_name_tiers(plan, load),
        *_name_sets(plan),
    )
    return Figure(drawing=drawing, caption=caption, is_folded=bool(folded.folded_by))


def lay_out_drawing(folded: Folded) -> DrawingLayout:
    """Return where to draw each box: a tier fills the page's width, ToR sets a little apart."""
    left_B, width_B = np.zeros(len(folded.name_B)), np.zeros(len(folded.name_B))
    for tier in np.unique(folded.tier_B):
        boxes = np.nonzero(folded.tier_B == tier)[0]
        is_new_group = np.concatenate([[0], np.diff(folded.group_B[boxes]) != 0])
        slot = np.arange(len(boxes)) + GROUP_GAP * np.cumsum(is_new_group)
        pitch = (svg.WIDTH - LEFT) / (slot[-1] + 1)
        width_B[boxes] = min(pitch * BOX_SHARE, MAX_BOX_WIDTH)
        left_B[boxes] = LEFT + pitch * (slot + 0.5) - width_B[boxes] / 2
    tiers = tuple(sorted(set(folded.tier_B.tolist()), reverse=True))
    y_B = np.array([TOP + ROW_HEIGHT * tiers.index(tier) for tier in folded.tier_B.tolist()])
    return DrawingLayout(folded=folded, left_B=left_B, width_B=width_B, y_B=y_B, tiers=tiers)


def bundle_loads(folded: Folded, load: LinkLoad) -> FloatArray:
    """Return the highest load within each bundle, shape (U, 2): from its first box to its second, and back."""
    load_U2 = np.zeros((len(folded.ends_U2), 2))
    is_forth_P = folded.box_N[load.fabric.port_node_P] == folded.ends_U2[folded.bundle_P, 0]
    for column, is_in_P in enumerate((is_forth_P, ~is_forth_P)):
        np.maximum.at(load_U2[:, column], folded.bundle_P[is_in_P], load.load_P[is_in_P])
    return load_U2


def _draw_bundles(plan: DrawingLayout, load: LinkLoad) -> list[Markup]:
    """Return a line for each bundle, the busiest last and so on top."""
    folded, y_B = plan.folded, plan.y_B
    load_U2, name_U = bundle_loads(folded, load), _bundle_names(folded, load)
    x_U2 = plan.centre_B[folded.ends_U2] + _parallel_offsets(folded)[:, None] * plan.width_B[folded.ends_U2]
    step_U = step_of(load_U2.max(axis=1))
    lines = []
    for bundle in np.argsort(step_U, kind="stable").tolist():
        low, high = folded.ends_U2[bundle].tolist()
        if low == high:
            continue
        step, kind = step_U[bundle], "edge" if folded.is_edge_U[bundle] else "link"
        hint = f"{name_U[bundle]} {percent(load_U2[bundle, 0])}, back {percent(load_U2[bundle, 1])}"
        hints = [svg.hint(hint)] if step or not folded.folded_by else []
        foot = BOX_HEIGHT if y_B[high] < y_B[low] else 0.0
        lines.append(
            svg.line(x_U2[bundle, 0], y_B[low], x_U2[bundle, 1], y_B[high] + foot, f"{kind} line-{step}", *hints)
        )
    return lines


def _draw_faults(plan: DrawingLayout, load: LinkLoad) -> list[Markup]:
    """Return a cross on each line of a link that had a fault."""
    folded, y_B = plan.folded, plan.y_B
    offset_U, marks = _parallel_offsets(folded), {}
    for port, fault in load.fault_of_port.items():
        bundle = int(folded.bundle_P[port])
        low, high = folded.ends_U2[bundle].tolist()
        if low != high:
            x = plan.centre_B[[low, high]] + offset_U[bundle] * plan.width_B[[low, high]]
            marks[bundle] = draw_cross(
                float(x.mean()), float(y_B[[low, high]].mean() + BOX_HEIGHT / 2), 5.0, fault.hint
            )
    return list(marks.values())


def _bundle_names(folded: Folded, load: LinkLoad) -> list[str]:
    """Return what each line joins: two ports where links are drawn singly, two boxes elsewhere."""
    if folded.folded_by:
        return [f"{folded.name_B[low]} → {folded.name_B[high]}" for low, high in folded.ends_U2.tolist()]
    is_forth_P = folded.box_N[load.fabric.port_node_P] == folded.ends_U2[folded.bundle_P, 0]
    port_U = np.zeros(len(folded.ends_U2), np.int64)
    ports = np.nonzero(is_forth_P)[0]
    port_U[folded.bundle_P[ports]] = ports
    return [load.fabric.link_label(port) for port in port_U.tolist()]


def _parallel_offsets(folded: Folded) -> FloatArray:
    """Return how far from its boxes' middle each bundle ends, as a share of their width: 0 for an only one."""
    _, first_G, pair_U, count_G = np.unique(
        folded.ends_U2, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    pair_U = pair_U.reshape(-1)
    rank_U = np.arange(len(folded.ends_U2)) - first_G[pair_U]
    return np.asarray(PARALLEL_SHARE * ((rank_U + 0.5) / count_G[pair_U] - 0.5))


def _draw_boxes(plan: DrawingLayout) -> list[Markup]:
    """Return every box, with its name where the names of all its tier fit."""
    folded = plan.folded
    shown_B = [f"{size:,}" for size in folded.size_B.tolist()] if folded.folded_by else list(folded.name_B)
    fits_B = CHARACTER_WIDTH * np.array([len(shown) for shown in shown_B]) <= plan.width_B
    parts: list[Markup] = []
    for box, (name, shown) in enumerate(zip(folded.name_B, shown_B, strict=True)):
        hint = svg.hint(f"{name}: {plural(int(folded.size_B[box]), 'node')}" if folded.folded_by else name)
        parts.append(svg.rectangle(plan.left_B[box], plan.y_B[box], plan.width_B[box], BOX_HEIGHT, "box", hint))
        if fits_B[folded.tier_B == folded.tier_B[box]].all():
            parts.append(svg.text(plan.centre_B[box], plan.y_B[box] + 13, shown, class_="box-name", anchor="middle"))
    return parts


def _name_tiers(plan: DrawingLayout, load: LinkLoad) -> list[Markup]:
    parts: list[Markup] = []
    for row, tier in enumerate(plan.tiers):
        y = TOP + ROW_HEIGHT * row
        count = int(plan.folded.size_B[plan.folded.tier_B == tier].sum())
        parts.append(svg.text(0, y + 8, load.fabric.tier_name(tier), class_="tier"))
        parts.append(svg.text(0, y + 23, plural(count, "node"), class_="tick"))
    return parts


def _name_sets(plan: DrawingLayout) -> list[Markup]:
    """Return a bracket under the lowest tier's boxes of each ToR set, where there are several."""
    folded = plan.folded
    is_foot_B = folded.tier_B == folded.tier_B.min()
    groups = [group for group in np.unique(folded.group_B[is_foot_B]).tolist() if group != NO_GROUP]
    parts: list[Markup] = []
    free = 0.0  # from where a name fits
    for group in groups if 1 < len(groups) <= MAX_BRACKETS else []:
        boxes = np.nonzero(is_foot_B & (folded.group_B == group))[0]
        start, end = plan.left_B[boxes].min(), (plan.left_B + plan.width_B)[boxes].max()
        y = plan.y_B[boxes[0]] + BOX_HEIGHT + 7
        name = f"ToR set {group}" if end - start > 11 * CHARACTER_WIDTH else str(group)
        parts += [svg.line(start, y, end, y, "bracket")]
        middle, half = (start + end) / 2, svg.LETTER_WIDTH * len(name) / 2
        if middle - half >= free:
            parts += [svg.centred_text(middle, y + 15, name, "tick")]
            free = middle + half + svg.LETTER_WIDTH / 2
    return parts


def _caption(load: LinkLoad, folded: Folded) -> str:
    ranked = load.busiest_ports()
    if not len(ranked):
        return f"{load.label}: no traffic on any link."
    busiest = int(ranked[0])
    overloaded = int((step_of(load.load_P) >= OVERLOADED).sum())
    caption = f"{load.label}: busiest link {load.fabric.link_label(busiest)} at {percent(load.load_P[busiest])}"
    caption += f" {load.measure}; {plural(overloaded, 'oversubscribed link direction')}." if overloaded else "."
    if folded.folded_by:
        caption += f" Grouped by {folded.folded_by}: a line is a bundle of links, coloured by its busiest link."
    return caption
