"""The block of a job: states of its ranks by their spans, and of an operated job also by its journal."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.span_reader import read_spans
from fabrictune.observability.rank_states import RankState, RankStates, rank_states
from fabrictune.reports.block import Block, Cube
from fabrictune.trainer_probe.operation.journal import FILE_NAME, open_journal

SPARE = "spare"
STATES = (*(state.value for state in RankState), SPARE)
HANGS = ("rank stopped", "rank hung", "deadlock")  # causes of ranks that are there and do nothing
MAX_NOTES = 8


@dataclass(frozen=True, kw_only=True)
class Journaled:
    """What a journal says since the last start: states of ranks with their causes, and nodes without ranks."""

    ranks: dict[int, tuple[RankState, str]]
    spares: tuple[str, ...]


def job_block(folder: Path) -> Block:
    """Return the block of the job in a folder; raises TraceError where it has no spans."""
    spans = read_spans(folder)
    states = rank_states(spans)
    journaled = _journaled(folder)
    layout = spans.layout
    axes = {axis: layout.degree(axis) for axis in ("dp", "pp", "tp")}
    axes |= {axis: layout.degree(axis) for axis in ("cp", "ep") if getattr(layout, axis) > 1}
    places = _places(layout, tuple(axes))
    cubes = [_cube(rank, spans.host_R[rank], states, journaled, places[rank]) for rank in range(layout.world_size)]
    spares = [Cube(name=node, host=node, state=SPARE, detail="has no rank", place={}) for node in journaled.spares]
    return Block(
        title=f"{folder.resolve().name}: {layout.describe()}",
        axes=axes,
        cubes=[*cubes, *spares],
        states=STATES,
        notes=states.notes[:MAX_NOTES],
    )


def _places(layout: ParallelLayout, axes: Sequence[str]) -> list[dict[str, int]]:
    """Return the position of each rank on each axis; that on ep is its place among the experts' ranks of its dp."""
    position = {str(axis): values for axis, values in layout.coordinates(np.arange(layout.world_size)).items()}
    position["ep"] = position["dp"] % layout.ep
    return [{axis: int(position[axis][rank]) for axis in axes} for rank in range(layout.world_size)]


def _cube(rank: int, host: str, states: RankStates, journaled: Journaled, place: dict[str, int]) -> Cube:
    state, detail = states.states[rank], states.details[rank]
    if rank in journaled.ranks:
        state, cause = journaled.ranks[rank]
        detail = f"{cause}; {detail}" if detail else cause
    values = (states.work_ratio_R[rank], states.wait_fraction_R[rank], states.last_share_R[rank])
    ratio, wait, last = (None if np.isnan(value) else float(value) for value in values)
    return Cube(name=str(rank), host=host, state=state.value, detail=detail, place=place, values=(ratio, wait, last))


def _journaled(folder: Path) -> Journaled:
    """Return what the journal of an operated job says; nothing where there is none."""
    if not (folder / FILE_NAME).is_file():
        return Journaled(ranks={}, spares=())
    ranks: dict[int, tuple[RankState, str]] = {}
    nodes, working = dict[str, None](), set[str]()
    with closing(open_journal(str(folder / FILE_NAME), is_read_only=True)) as journal:
        for event in journal.read():
            match event.kind:
                case "node joined":
                    nodes[event.values["node"]] = None
                case "node evicted" | "node ended":
                    nodes.pop(event.values["node"], None)
                case "generation started":
                    ranks, working = {}, set(event.values["nodes"])
                case "fault detected" if event.values["is_fatal"]:
                    cause = event.values["cause"]
                    state = RankState.HUNG if cause in HANGS else RankState.DEAD
                    ranks |= dict.fromkeys(event.values["ranks"], (state, cause))
    return Journaled(ranks=ranks, spares=tuple(node for node in nodes if node not in working))
