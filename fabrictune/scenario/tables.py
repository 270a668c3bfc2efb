"""Dataclasses of figures as columns of a run record's table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.topology.ecmp.estimates import Estimate


def estimate_columns(rows: Sequence[Any]) -> Columns:
    """Return a column for each field of the rows; an estimate is three: the figure, `_low` and `_high`."""
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in vars(row).items():
            if isinstance(value, Estimate):
                for end, number in (("", value.value), ("_low", value.low), ("_high", value.high)):
                    columns.setdefault(f"{name}{end}", []).append(number)
            else:
                columns.setdefault(name, []).append(value)
    return {name: np.array(column) for name, column in columns.items()}
