"""The comparison as Markdown: each law's means over seeds, and differences in pairs.

A pair is one seed: both laws on the same paths. The interval is Student's t over the pairs' relative differences; where
it holds 0, nothing was shown.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.law_comparison.contenders import BASELINE
from benchmarks.law_comparison.points import FIGURES, FIGURES_OF_VICTIMS, Figures, Point
from fabrictune.foundation.metrics.measures import metric_of
from fabrictune.scenario.expectations import Measure
from fabrictune.topology.ecmp.estimates import estimate_mean

SUBJECT = "hybrid"
PAIRED = "makespan"
# What the subject is held against each other law by.
SUBJECT_BY = (PAIRED, "throughput.mean", Measure(metric="slowdown.p99", part="bystanders").name)


def tables(figures: Mapping[Point, Figures]) -> Iterator[str]:
    """Return one table for each question that has points, and one for each figure that the subject is compared by."""
    by_question = {
        question: {point: found for point, found in figures.items() if point.question == question}
        for question in dict.fromkeys(point.question for point in figures)
    }
    for question, found in by_question.items():
        yield _table(question, found)
    rivals = [law for law in dict.fromkeys(point.contender for point in figures) if law != SUBJECT]
    for name in SUBJECT_BY if any(point.contender == SUBJECT for point in figures) else ():
        yield _table_of_subject(name, rivals, by_question)


def more_than(figures: Mapping[Point, Figures], contender: str, rival: str, name: str = PAIRED) -> list[float]:
    """Return by which share a law has more than its rival, for each seed of one question that both have finished."""
    value = {(point.contender, point.seed): found[name] for point, found in figures.items()}
    seeds = sorted({seed for _, seed in value})
    return [
        value[contender, seed] / value[rival, seed] - 1
        for seed in seeds
        if (contender, seed) in value and (rival, seed) in value
    ]


def _table_of_subject(name: str, rivals: Sequence[str], by_question: Mapping[str, Mapping[Point, Figures]]) -> str:
    rows = [
        f"| {question} | {' | '.join(_difference(more_than(found, SUBJECT, rival, name)) for rival in rivals)} |"
        for question, found in by_question.items()
        if all(name in one for one in found.values())
    ]
    header = f"### {SUBJECT}: {name} over that of\n\n| question | {' | '.join(rivals)} |"
    return "\n".join([header, "|---" * (len(rivals) + 1) + "|", *rows])


def _table(question: str, figures: Mapping[Point, Figures]) -> str:
    known = next(iter(figures.values()))
    names = [figure.name for figure in (*FIGURES, *FIGURES_OF_VICTIMS) if figure.name in known]
    header = f"### {question}\n\n| law | seeds | {PAIRED} over {BASELINE} | " + " | ".join(names) + " |"
    rule = "|---" * (len(names) + 3) + "|"
    laws = dict.fromkeys(point.contender for point in figures)
    return "\n".join([header, rule, *(_row(law, figures, names) for law in laws)])


def _row(contender: str, figures: Mapping[Point, Figures], names: list[str]) -> str:
    own = [found for point, found in figures.items() if point.contender == contender]
    means = [metric_of(name).show(float(np.mean([one[name] for one in own]))) for name in names]
    cells = [contender, str(len(own)), _difference(more_than(figures, contender, BASELINE)), *means]
    return f"| {' | '.join(cells)} |"


def _difference(shares: list[float]) -> str:
    finite = [share for share in shares if math.isfinite(share)]
    if len(finite) < len(shares) or not finite:
        return "unknown"
    mean = estimate_mean(finite)
    return f"{mean.value:+.1%} ({mean.low:+.1%} to {mean.high:+.1%})" if len(finite) > 1 else f"{mean.value:+.1%}"
