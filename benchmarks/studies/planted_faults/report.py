"""Figures of a campaign: by kind, by size and in all, with Wilson's intervals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.studies.planted_faults.commands import HANG
from benchmarks.studies.planted_faults.trials import CLEAN, Result
from fabrictune.topology.ecmp.estimates import estimate_share

HANG_LIMIT_S = 15.0
HEAD = ("", "trials", "found", "located", "names right", "clean runs with a name", "answer after, s")


@dataclass(frozen=True, kw_only=True)
class Share:
    """How many of how many, and the interval in which the share of all such trials lies 19 times of 20."""

    number: int
    total: int
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, values: Iterable[bool]) -> "Share":
        """Return the share of values that are true."""
        known = list(values)
        if not known:
            return cls(number=0, total=0)
        estimate = estimate_share(known)
        return cls(number=sum(known), total=len(known), low=estimate.low, high=estimate.high)

    def __str__(self) -> str:
        if not self.total:
            return "-"
        percent = f"{self.number / self.total:.1%} ({self.low:.1%} to {self.high:.1%})"
        return f"{self.number}/{self.total} {percent}"


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Figures of some trials."""

    num_trials: int
    recall: Share  # planted faults whose cause is named
    located: Share  # with its place
    precision: Share  # names that are right
    alarms: Share  # clean runs in which something is named
    in_time: Share  # hangs named within HANG_LIMIT_S
    slowest_s: float


def figures(results: Sequence[Result]) -> Figures:
    """Return the figures of some trials."""
    faults = [result for result in results if result.truth is not None]
    clean = [result for result in results if result.truth is None]
    hangs = [result for result in faults if result.trial.kind == HANG]
    right = [place < result.right for result in results for place in range(len(result.names))]
    return Figures(
        num_trials=len(results),
        recall=Share.of(result.is_found for result in faults),
        located=Share.of(result.is_located for result in faults),
        precision=Share.of(right),
        alarms=Share.of(bool(result.names) for result in clean),
        in_time=Share.of(result.is_found and result.answer_s <= HANG_LIMIT_S for result in hangs),
        slowest_s=max((result.answer_s for result in results), default=0.0),
    )


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Return all figures as JSON values."""
    return {
        **{title: {name: asdict(figures(rows)) for name, rows in table.items()} for title, table in _tables(results)},
        "all": asdict(figures(results)),
        "misses": [_miss(result) for result in results if _is_miss(result)],
    }


def as_text(results: Sequence[Result]) -> str:
    """Return all figures as tables, and a line for each miss."""
    lines: list[str] = []
    for title, table in _tables(results):
        rows = [(name, *_cells(figures(own))) for name, own in table.items()]
        lines += [title, *_aligned([HEAD, *rows]), ""]
    whole = figures(results)
    lines += [
        f"faults whose cause is named (recall): {whole.recall}",
        f"named with its place (located): {whole.located}",
        f"names that are right (precision): {whole.precision}",
        f"clean runs in which something is named: {whole.alarms}",
        f"hangs named within {HANG_LIMIT_S:g} s: {whole.in_time}",
        "",
        *(_miss(result) for result in results if _is_miss(result)),
    ]
    return "\n".join(lines)


def _tables(results: Sequence[Result]) -> Iterable[tuple[str, dict[str, list[Result]]]]:
    by: tuple[tuple[str, Callable[[Result], str]], ...] = (
        ("by kind", lambda result: f"{result.trial.part} {result.trial.kind}"),
        ("by size", lambda result: f"{result.trial.part} {result.trial.size}"),
    )
    for title, key in by:
        names = dict.fromkeys(map(key, results))
        yield title, {name: [result for result in results if key(result) == name] for name in names}


def _cells(found: Figures) -> tuple[str, ...]:
    shares = found.recall, found.located, found.precision, found.alarms
    return str(found.num_trials), *map(str, shares), f"{found.slowest_s:.1f}"


def _is_miss(result: Result) -> bool:
    return len(result.names) != result.right or (result.truth is not None and not result.is_located)


def _miss(result: Result) -> str:
    trial, truth = result.trial, result.truth
    planted = CLEAN if truth is None else f"{truth.cause} {' or '.join(','.join(place) for place in truth.places)}"
    named = "; ".join(f"{name.cause} {','.join(name.where)}" for name in result.names)
    return f"  {trial.part} {trial.size} {trial.kind} {trial.number}: planted {planted}; named {named or 'nothing'}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
