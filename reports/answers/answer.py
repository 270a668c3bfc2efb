"""Answer of one run: a sentence, the bounds it met and broke, and the settings to apply."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports.blocks import duration
from fabrictune.reports.record_view import Run

MAX_LINES = 100  # of settings that are shown


@dataclass(frozen=True, kw_only=True)
class Bound:
    """An expectation and what became of it."""

    text: str
    is_met: bool | None  # None where it could not be checked


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Lines to apply, and where."""

    caption: str
    lines: tuple[str, ...]
    num_more: int = 0  # lines that are not shown

    @classmethod
    def of(cls, caption: str, lines: Iterable[str]) -> "Settings":
        """Return the first MAX_LINES lines, the others counted."""
        every = tuple(lines)
        return cls(caption=caption, lines=every[:MAX_LINES], num_more=len(every[MAX_LINES:]))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a page says first of one run."""

    sentence: str
    bounds: tuple[Bound, ...] = ()
    settings: tuple[Settings, ...] = field(default=())


Answering = Callable[[Run], Answer | None]  # None where the run has no results


def spread(ends: Iterable[float], show: Callable[[float], str], *, level: str = "95 %") -> str:
    """Return a figure, low and high end as text, "96 % (95 % interval 95 % to 97 %)"; alone where they are one."""
    value, low, high = ends
    return show(value) if not low < high else f"{show(value)} ({level} interval {show(low)} to {show(high)})"


def nanoseconds(duration_ns: float) -> str:
    """Return a duration in ns for people."""
    return duration(duration_ns * PS_PER_NS)


def points(fraction: float) -> str:
    """Return a difference of shares: "+25.1 points"."""
    return f"{100 * fraction:+.1f} points"


def change(fraction: float) -> str:
    """Return a relative change: "-4.2 %", one that rounds to nothing as "+0.0 %"."""
    return f"{round(100 * fraction, 1) + 0.0:+.1f} %"


def outcome(run: Run) -> Mapping[str, float]:
    """Return the finite figures of `run["outcome"]` by name, those that the record has."""
    figures = run.record.run.get("outcome")
    if not isinstance(figures, Mapping):
        return {}
    return {
        str(name): value
        for name, value in figures.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    }
