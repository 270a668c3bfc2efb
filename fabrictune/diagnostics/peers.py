"""Nodes compared with their peers: figures that are outliers, and bits that differ from those of most."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabrictune.diagnostics.figures import FIGURES
from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.finding_rules.diagnostics import NODE_SLOW
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.outliers import Outlier, find_outliers

Results = Mapping[tuple[str, int], NodeResult]  # by test and rank


@dataclass(frozen=True, kw_only=True)
class SlowNode:
    """A rank whose figure is worse than its peers'."""

    rank: int
    test: str
    figure: str
    value: float
    usual: float  # the median of all
    outlier: Outlier  # of the time that a unit takes
    num_peers: int


@dataclass(frozen=True, kw_only=True)
class DifferentBits:
    """A rank whose bits are not those of most ranks of its kind."""

    rank: int
    test: str
    num_same: int  # ranks of its kind with the bits that most have
    num_ranks: int
    is_tied: bool  # whether no bits are those of most


def slow_nodes(results: Results, rules: RuleSettings = CATALOG_SETTINGS) -> Iterator[SlowNode]:
    """Yield the outliers of each figure that enough ranks have.

    Rates are compared by the time that a unit takes: a rate cannot fall far below zero, and a time can be many times
    longer.
    """
    least, many, spread = (rules.threshold(NODE_SLOW, name) for name in ("least_nodes", "many_nodes", "spread"))
    values: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (test, rank), result in results.items():
        for figure, value in result.figures.items():
            if figure in FIGURES and value > 0:
                values[test, figure][str(rank)] = value
    for (test, figure), own in values.items():
        if len(own) < least:
            continue
        deviation = rules.threshold(NODE_SLOW, "deviation" if len(own) >= many else "deviation_of_few")
        is_time = FIGURES[figure].is_less_better
        times = {rank: value if is_time else 1 / value for rank, value in own.items()}
        for outlier in find_outliers(times, deviation=deviation, spread=spread, is_less_better=True):
            yield SlowNode(
                rank=int(outlier.name),
                test=test,
                figure=figure,
                value=own[outlier.name],
                usual=outlier.usual if is_time else 1 / outlier.usual,
                outlier=outlier,
                num_peers=len(own),
            )


def different_bits(results: Results) -> Iterator[DifferentBits]:
    """Yield the ranks whose digest is not that of most ranks of their kind; all of them where none is of most."""
    of_kind: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for (test, rank), result in results.items():
        if result.digest:
            of_kind[test, result.kind][rank] = result.digest
    for (test, _), digests in of_kind.items():
        (usual, num_same), *others = Counter(digests.values()).most_common(2)
        is_tied = bool(others) and others[0][1] == num_same
        for rank, digest in digests.items():
            if digest != usual or is_tied:
                yield DifferentBits(rank=rank, test=test, num_same=num_same, num_ranks=len(digests), is_tied=is_tied)


def best_of(earlier: NodeResult, later: NodeResult) -> NodeResult:
    """Return a repeated test's result: the best of each figure, and every fault."""
    figures = dict(earlier.figures)
    for name, value in later.figures.items():
        better = min if name in FIGURES and FIGURES[name].is_less_better else max
        figures[name] = better(value, figures.get(name, value))
    return NodeResult(
        test=earlier.test,
        figures=figures,
        faults=tuple(dict.fromkeys((*earlier.faults, *later.faults))),
        digest=earlier.digest if earlier.digest == later.digest else "",
        kind=earlier.kind,
        skipped=earlier.skipped,
        elapsed_s=earlier.elapsed_s + later.elapsed_s,
    )
