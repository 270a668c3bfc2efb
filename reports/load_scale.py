"""The colour scale of link loads, the same on every figure: one hue from pale to deep, another beyond the link's rate.

The steps are style classes `load-0` to `load-6`; their colours, which differ between light, dark and print, are in
`templates/page.css`. The hue changes only where it matters, so the scale survives colour blindness and grey paper.
"""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from fabrictune.foundation.arrays import IntArray
from fabrictune.reports import svg

UPPER_ENDS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of steps 0 to 5; step 6 is above them all
STEP_NAMES = ("idle", "to 20 %", "to 40 %", "to 60 %", "to 80 %", "to 100 %", "over 100 %")
OVERLOADED = len(UPPER_ENDS)

ROUNDING = 1e-9  # a link filled exactly to its rate is not overloaded


def step_of(load: ArrayLike) -> IntArray:
    """Return the step of each load, 0 to 6."""
    return np.searchsorted(np.asarray(UPPER_ENDS) + ROUNDING, np.asarray(load, np.float64), side="left")


def legend(x: float, y: float, measure: str) -> Markup:
    """Return the key to the colours of loads, its baseline at y."""
    return key(x, y, measure, STEP_NAMES)


def key(x: float, y: float, title: str, names: Sequence[str]) -> Markup:
    """Return one swatch a step with its name, baseline at y."""
    parts = [svg.text(x, y, title, class_="axis")]
    x += 8 + 6.6 * len(title)
    for step, name in enumerate(names):
        parts.append(svg.rectangle(x, y - 9, 18, 10, f"fill-{step}"))
        parts.append(svg.text(x + 23, y, name, class_="tick"))
        x += 34 + 6.2 * len(name)
    return Markup("").join(parts)
