"""The fabric drawn tier over tier, hosts at the foot, every link in the colour of its load.

The busier direction of a link gives it its colour; idle links stay faint and the busiest are drawn last, so that a
collision is never hidden beneath quiet neighbours.

Shapes: B boxes and U bundles as in `folding`; P ports.
"""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from reports import svg
from reports.blocks import TIMES, Figure, Section, percent, plural
from reports.folding import Folded, fold
from reports.link_load import LinkLoad, carried_load, offered_load
from reports.load_scale import OVERLOADED, legend, step_of
from reports.runs import Run
from topology.fabric import NO_GROUP

LEFT = 96.0  # of the boxes: room for the tiers' names
ROW_HEIGHT = 118.0
BOX_HEIGHT = 18.0
TOP = 40.0
MAX_BOX_WIDTH = 104.0
CHARACTER_WIDTH = 6.4  # of a box's name


def fabric_section(runs: Sequence[Run]) -> Section | None:
    """Return one drawing for each run that has a fabric and loads, or None."""
    loads = [load for run in runs if (load := offered_load(run) or carried_load(run)) is not None]
    if not loads:
        return None
    return Section(
        anchor="fabric",
        title="Fabric",
        lead="Links in the colour of their busier direction. Rest the pointer on a link for its name and load.",
        blocks=tuple(draw_fabric(load) for load in loads),
    )


def draw_fabric(load: LinkLoad) -> Figure:
    """Return the drawing of one run's fabric."""
    folded = fold(load.fabric)
    load_U2 = _bundle_loads(folded, load)
    left_B, width_B = _columns(folded)
    tiers = sorted(set(folded.tier_B.tolist()), reverse=True)
    y_B = np.array([TOP + ROW_HEIGHT * tiers.index(tier) for tier in folded.tier_B.tolist()])
    step_U = step_of(load_U2.max(axis=1))
    order = np.argsort(step_U, kind="stable")
    centre_B = left_B + width_B / 2
    parts = [legend(LEFT, 14, load.measure)]
    parts += [
        _draw_bundle(folded, int(bundle), centre_B, y_B, load_U2[bundle], int(step_U[bundle])) for bundle in order
    ]
    parts += [_draw_box(folded, box, left_B[box], width_B[box], y_B[box]) for box in range(len(folded.name_B))]
    parts += [_name_tier(load, folded, tier, TOP + ROW_HEIGHT * row) for row, tier in enumerate(tiers)]
    parts += _name_groups(folded, left_B, width_B, y_B)
    caption = _caption(load, folded)
    height = TOP + ROW_HEIGHT * (len(tiers) - 1) + BOX_HEIGHT + 34
    return Figure(drawing=svg.figure(height, caption, *parts), caption=caption)


def _bundle_loads(folded: Folded, load: LinkLoad) -> NDArray[np.float64]:
    """Return the highest load within each bundle, upwards in column 0 and downwards in column 1."""
    load_U2 = np.zeros((len(folded.ends_U2), 2))
    starts_low_P = folded.box_N[load.fabric.port_node_P] == folded.ends_U2[folded.bundle_P, 0]
    for column, is_in_P in enumerate((starts_low_P, ~starts_low_P)):
        np.maximum.at(load_U2[:, column], folded.bundle_P[is_in_P], load.load_P[is_in_P])
    return load_U2


def _columns(folded: Folded) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the left edge and width of each box: a tier fills the page's width, groups a little apart."""
    left_B, width_B = np.zeros(len(folded.name_B)), np.zeros(len(folded.name_B))
    for tier in np.unique(folded.tier_B):
        boxes = np.nonzero(folded.tier_B == tier)[0]
        is_new_group = np.concatenate([[0], (np.diff(folded.group_B[boxes]) != 0)])
        slot_of_box = np.arange(len(boxes)) + 0.7 * np.cumsum(is_new_group)
        pitch = (svg.WIDTH - LEFT) / (slot_of_box[-1] + 1)
        width_B[boxes] = min(pitch * 0.8, MAX_BOX_WIDTH)
        left_B[boxes] = LEFT + pitch * (slot_of_box + 0.5) - width_B[boxes] / 2
    return left_B, width_B


def _draw_bundle(
    folded: Folded,
    bundle: int,
    centre_B: NDArray[np.float64],
    y_B: NDArray[np.float64],
    load_2: NDArray[np.float64],
    step: int,
) -> Markup:
    low, high = folded.ends_U2[bundle]
    if low == high:
        return Markup("")
    names = folded.name_B[low], folded.name_B[high]
    directions = f"{names[0]} → {names[1]} {percent(load_2[0])}, back {percent(load_2[1])}"
    hints = [svg.hint(directions)] if step else []
    foot = BOX_HEIGHT if y_B[high] < y_B[low] else 0.0
    return svg.line(centre_B[low], y_B[low], centre_B[high], y_B[high] + foot, f"link line-{step}", *hints)


def _draw_box(folded: Folded, box: int, left: float, width: float, y: float) -> Markup:
    name, size = folded.name_B[box], int(folded.size_B[box])
    shown = f"{size:,} {TIMES}" if folded.folded_by else name
    parts = [
        svg.rectangle(left, y, width, BOX_HEIGHT, "box", svg.hint(f"{name} {TIMES} {size:,}" if size > 1 else name))
    ]
    if CHARACTER_WIDTH * len(shown) <= width:
        parts.append(svg.text(left + width / 2, y + 13, shown, class_="box-name", anchor="middle"))
    return Markup("").join(parts)


def _name_tier(load: LinkLoad, folded: Folded, tier: int, y: float) -> Markup:
    count = int(folded.size_B[folded.tier_B == tier].sum())
    name = load.fabric.tier_name(tier)
    return Markup("").join(
        [svg.text(0, y + 8, f"{name}s", class_="tier"), svg.text(0, y + 23, f"{count:,}", class_="tick")]
    )


def _name_groups(
    folded: Folded, left_B: NDArray[np.float64], width_B: NDArray[np.float64], y_B: NDArray[np.float64]
) -> list[Markup]:
    """Return a bracket under the hosts of each group, where there is more than one."""
    foot = int(folded.tier_B.min())
    groups = [group for group in np.unique(folded.group_B[folded.tier_B == foot]) if group != NO_GROUP]
    parts: list[Markup] = []
    for group in groups if 1 < len(groups) <= 64 else []:
        boxes = np.nonzero((folded.tier_B == foot) & (folded.group_B == group))[0]
        start, end = left_B[boxes].min(), (left_B + width_B)[boxes].max()
        y = y_B[boxes[0]] + BOX_HEIGHT + 7
        name = f"set {group}" if end - start > 7 * CHARACTER_WIDTH else str(group)
        parts += [svg.line(start, y, end, y, "bracket")]
        parts += [svg.text((start + end) / 2, y + 15, name, class_="tick", anchor="middle")]
    return parts


def _caption(load: LinkLoad, folded: Folded) -> str:
    step_P = step_of(load.load_P)
    overloaded = int((step_P == OVERLOADED).sum())
    busiest = int(np.argmax(load.load_P))
    said = f"{load.label}: busiest link {load.fabric.link_label(busiest)} at {percent(load.load_P[busiest])}"
    said += f" {load.measure}; {plural(overloaded, 'link direction')} beyond the link's rate." if overloaded else "."
    if folded.folded_by:
        unit = "ToR set" if folded.folded_by == "group" else folded.folded_by
        said += f" Drawn by {unit}: a line is a bundle of links in the colour of its busiest."
    return said
