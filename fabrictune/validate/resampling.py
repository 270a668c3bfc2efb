"""Intervals of predictions from the spread of their calibration, by resampling.

On a machine of our own, steps are drawn with replacement, and the calibration is made again from the rounds of probes
that follow them: what a minute did to all probes stays together. On a busy machine a median says little, for whether a
thread finds a processor decides a time: there each draw is a single round, and the interval that of one collective. It
holds 90 % of what the draws predict.

Source: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979).

Shapes: B draws, K rounds.
"""

from collections.abc import Callable, Iterator

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.seeds import stream

NUM_DRAWS = 200
TAILS = (0.05, 0.95)


def drawn_rounds(step_K: IntArray, seed: int, *, is_busy: bool) -> Iterator[IntArray]:
    """Yield the rounds of each draw."""
    random = stream(seed, "calibration draws")
    steps = np.unique(step_K)
    rounds = [np.flatnonzero(step_K == step) for step in steps.tolist()]
    for _ in range(NUM_DRAWS):
        if is_busy:
            yield random.integers(len(step_K), size=1)
        else:
            yield np.concatenate([rounds[place] for place in random.integers(len(steps), size=len(steps)).tolist()])


def bounds(predict: Callable[[IntArray], FloatArray], draws: Iterator[IntArray]) -> tuple[FloatArray, FloatArray]:
    """Return the 5 % and 95 % quantiles of what draws of rounds predict, for each prediction."""
    low, high = percentiles(np.array([predict(rounds) for rounds in draws]).T, TAILS)
    return np.asarray(low, np.float64), np.asarray(high, np.float64)


def median_bounds(values: FloatArray | IntArray) -> tuple[float, float]:
    """Return a 90 % interval of the median of a sample: two of its values, by the binomial law of those below it.

    Source: H. A. David, "Order Statistics", 2nd edition, 1981, section 2.5, with the normal approximation.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    margin = 1.645 * np.sqrt(len(ordered)) / 2
    low = max(0, int(np.floor(len(ordered) / 2 - margin)))
    high = min(len(ordered) - 1, int(np.ceil(len(ordered) / 2 + margin)))
    return float(ordered[low]), float(ordered[high])
