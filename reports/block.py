"""The block of a job: its ranks as cubes by data, pipeline and tensor rank, coloured by state, in one HTML file.

The file loads nothing, as the page on records does (`page.py`). Without its script it is a table of the ranks. The
script draws from that table, so that nothing is in the drawing alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.reports.page import asset, environment, policy_hash, write_html

COLUMNS = ("work_ratio", "wait_fraction", "last_share")
HEADINGS = ("Work over peers", "Waiting", "Last of its group")


@dataclass(frozen=True, kw_only=True)
class Cube:
    """A rank, or a node without ranks."""

    name: str
    host: str
    state: str
    detail: str
    place: Mapping[str, int]  # its position on each axis; empty of a node without ranks
    values: tuple[float | None, float | None, float | None] = (None, None, None)  # COLUMNS; None where not known

    @property
    def shown(self) -> list[str]:
        """The values as text."""
        ratio, *shares = self.values
        return ["" if ratio is None else f"{ratio:.3f}", *("" if share is None else f"{share:.1%}" for share in shares)]


@dataclass(frozen=True, kw_only=True)
class Block:
    """What is drawn: the axes with their degrees, across, back and up first, then those that only choose slices."""

    title: str
    axes: Mapping[str, int]
    cubes: Sequence[Cube]
    states: Sequence[str]  # in the order of the legend; the place of a state is its colour
    notes: Sequence[str] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many cubes are in each state that any is in."""
        counts = {state: sum(cube.state == state for cube in self.cubes) for state in self.states}
        return {state: count for state, count in counts.items() if count}


def write_block(block: Block, path: Path) -> Path:
    """Write the block as an HTML file; raises InputError where it cannot be written."""
    style, script = asset("page.css") + asset("block.css"), asset("block.js")
    html = (
        environment()
        .get_template("block.html.j2")
        .render(
            block=block,
            headings=HEADINGS,
            columns=COLUMNS,
            state_numbers={state: number for number, state in enumerate(block.states)},
            style=style,
            script=script,
            style_hash=policy_hash(style),
            script_hash=policy_hash(script),
        )
    )
    return write_html(html, path)
