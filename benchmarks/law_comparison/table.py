"""The comparison as Markdown: each law's means over seeds, and how much longer it takes than the baseline, in pairs.

A pair is one seed: both laws on the same paths. The interval is Student's t over the pairs' relative differences; where
it holds 0, nothing was shown.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.law_comparison.contenders import BASELINE
from benchmarks.law_comparison.points import FIGURES, FIGURES_OF_VICTIMS, VICTIMS, Figures, Point
from fabrictune.scenario.expectations import METRICS
from topology.estimates import estimate_mean

PAIRED = "makespan"
OF_VICTIMS = tuple(f"{VICTIMS}.{name}" for name in FIGURES_OF_VICTIMS)


def tables(figures: Mapping[Point, Figures]) -> Iterator[str]:
    """Return one table for each question that has points."""
    for question in dict.fromkeys(point.question for point in figures):
        yield _table(question, {point: found for point, found in figures.items() if point.question == question})


def longer_than_baseline(figures: Mapping[Point, Figures], contender: str) -> list[float]:
    """Return by how much of the baseline's time a law took longer, for each seed that both have finished."""
    time_ps = {(point.contender, point.seed): found[PAIRED] for point, found in figures.items()}
    seeds = sorted({seed for _, seed in time_ps})
    return [
        time_ps[contender, seed] / time_ps[BASELINE, seed] - 1
        for seed in seeds
        if (contender, seed) in time_ps and (BASELINE, seed) in time_ps
    ]


def _table(question: str, figures: Mapping[Point, Figures]) -> str:
    names = [name for name in (*FIGURES, *OF_VICTIMS) if name in next(iter(figures.values()))]
    header = f"### {question}\n\n| law | seeds | {PAIRED} over {BASELINE} | " + " | ".join(names) + " |"
    rule = "|---" * (len(names) + 3) + "|"
    laws = dict.fromkeys(point.contender for point in figures)
    return "\n".join([header, rule, *(_row(law, figures, names) for law in laws)])


def _row(contender: str, figures: Mapping[Point, Figures], names: list[str]) -> str:
    own = [found for point, found in figures.items() if point.contender == contender]
    means = [
        METRICS[name.removeprefix(f"{VICTIMS}.")].show(float(np.mean([one[name] for one in own]))) for name in names
    ]
    cells = [contender, str(len(own)), _difference(longer_than_baseline(figures, contender)), *means]
    return f"| {' | '.join(cells)} |"


def _difference(shares: list[float]) -> str:
    finite = [share for share in shares if math.isfinite(share)]
    if len(finite) < len(shares) or not finite:
        return "unknown"
    mean = estimate_mean(finite)
    return f"{mean.value:+.1%} ({mean.low:+.1%} to {mean.high:+.1%})" if len(finite) > 1 else f"{mean.value:+.1%}"
