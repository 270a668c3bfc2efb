"""The colour scale of link loads, the same on every figure: one hue up to the link's rate, another beyond it.

The steps are style classes `load-0` to `load-9`; their colours, which differ between light, dark and print, are in
`templates/page.css`. The hue changes only where it matters, and lightness goes one way through all steps, so the scale
survives colour blindness and grey paper.
"""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from fabrictune.foundation.arrays import IntArray
from fabrictune.reports import svg

UPPER_ENDS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0)  # of steps 0 to 8; step 9 is above them all
STEP_NAMES = ("idle", "20 %", "40 %", "60 %", "80 %", "100 %", "150 %", "200 %", "300 %", "over 300 %")
OVERLOADED = UPPER_ENDS.index(1.0) + 1  # the first step above a link's rate

ROUNDING = 1e-9  # a link filled exactly to its rate is not overloaded


def step_of(load: ArrayLike) -> IntArray:
    """Return the step of each load, 0 to 9."""
    return np.searchsorted(np.asarray(UPPER_ENDS) + ROUNDING, np.asarray(load, np.float64), side="left")


def legend(x: float, y: float, measure: str) -> Markup:
    """Return the key to the colours of loads, its baseline at y."""
    return key(x, y, f"{measure}, up to", STEP_NAMES)


def key(x: float, y: float, title: str, names: Sequence[str]) -> Markup:
    """Return one swatch a step with its name, baseline at y."""
    parts = [svg.text(x, y, title, class_="axis")]
    x += 8 + 6.6 * len(title)
    for step, name in enumerate(names):
        parts.append(svg.rectangle(x, y - 9, 18, 10, f"fill-{step}"))
        parts.append(svg.text(x + 23, y, name, class_="tick"))
        x += 34 + 6.2 * len(name)
    return Markup("").join(parts)
