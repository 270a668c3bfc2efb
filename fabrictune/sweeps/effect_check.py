"""Effect check: a few early runs of a sweep that show whether every key changes anything.

Two points are looked at, one with every key at its first value and one with every key at its last. From each, one key
at a time goes to its other end. A key that changes no number of any transfer, port or queue at either place has no
effect: it belongs to something that is switched off, or another key takes its place. The points of a grid that are run
for this are not run again.
"""

import json
from collections.abc import Callable
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.sweeps.points import Point, PointMaker
from fabrictune.sweeps.schema import Sweep
from fabrictune.sweeps.search import AxisValues, key_of_values


def probe_points(sweep: Sweep, maker: PointMaker) -> list[Point]:
    """Return the points that show what each key does, each once; raises InputError where the first is a mistake."""
    corners = _corners(sweep)
    points = {
        key_of_values(corners[0]): maker.check(corners[0])
    }  # a key that does not exist is named before anything runs
    for corner, other in (corners, corners[::-1]):
        for values in (corner, *(_moved(corner, other, place) for place in range(len(corner)))):
            if (key := key_of_values(values)) not in points:
                points[key] = maker.make(values)
    return list(points.values())


def refuse_keys_without_effect(sweep: Sweep, result: Callable[[AxisValues], str | None]) -> None:
    """Raise InputError naming every key that changed no result; `result` is None for a point that has none."""
    idle = []
    first, last = _corners(sweep)
    for place, axis in enumerate(sweep.vary):
        pairs = [
            (result(point), result(_moved(point, other, place))) for point, other in ((first, last), (last, first))
        ]
        known = [(before, after) for before, after in pairs if before is not None and after is not None]
        if known and all(before == after for before, after in known):
            values = f"{_written(first[place])} and {_written(last[place])}"
            idle.append(
                Mistake(
                    where=sweep.where("vary", place, "key"),
                    found=f"{axis.key}: {values} give the same run, to the last packet",
                    allowed="keys that change something",
                    next_step="leave it out, switch on what it belongs to, or say `probe: false`",
                )
            )
    if idle:
        raise InputError(*idle)


def _written(value: Any) -> str:
    """Return a value as the scenario's file has it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _corners(sweep: Sweep) -> tuple[AxisValues, AxisValues]:
    return tuple(axis.at(0) for axis in sweep.vary), tuple(axis.at(1) for axis in sweep.vary)


def _moved(corner: AxisValues, other: AxisValues, place: int) -> AxisValues:
    """Return a corner with one key at its other end."""
    return (*corner[:place], other[place], *corner[place + 1 :])
