"""The report of a chaos session: a row a fault, shares with Wilson's intervals, and where failures' evidence lies."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fabrictune.topology.ecmp.estimates import estimate_share
from tests.chaos.verdicts import Verdict

Column = tuple[str, Callable[[Sequence[Verdict]], str]]


def report(verdicts: Sequence[Verdict], runs: Path) -> str:
    """Return the table by fault, the shares of all runs, and every failed run."""
    faults = sorted({verdict.fault for verdict in verdicts})
    rows = [[fault, *_cells([verdict for verdict in verdicts if verdict.fault == fault])] for fault in faults]
    rows.append(["all", *_cells(verdicts)])
    lines = _table([["fault", *(name for name, _ in COLUMNS)], *rows])
    failed = [verdict for verdict in verdicts if verdict.failures]
    lines += ["", *(f"{name}: {_share(part)}" for name, part in _shares(verdicts) if part)]
    lines += ["", f"{len(failed)} of {len(verdicts)} runs failed"]
    for verdict in failed:
        lines.append(f"  {verdict.number} {verdict.fault}: {'; '.join(verdict.failures)}")
        lines.append(f"    {runs / verdict.folder}")
    return "\n".join(lines)


def _shares(verdicts: Sequence[Verdict]) -> Iterable[tuple[str, list[bool]]]:
    yield "recovered or stopped with its cause named", [v.is_recovered or v.is_stopped_named for v in verdicts]
    yield "parameters bit-identical, of those recovered", _known(v.is_identical for v in verdicts)
    yield "at most one interval lost, of those restored", [v.intervals_lost <= 1 for v in verdicts if v.num_restores]
    yield "guilty named (recall)", [found for v in verdicts for found in v.found]
    yield "named is guilty (precision)", [right for v in verdicts for right in v.named]
    yield "right, of those named without being ended", [right for v in verdicts for right in v.remarks]
    yield (
        "stopped rank detected within 3 step times, once two steps were done",
        [
            v.detection_steps <= 3
            for v in verdicts
            if v.fault in STOPPED and v.detection_steps and v.num_steps_before > 1
        ],
    )
    yield "cause within 20 s", [v.detection_s <= 20 for v in verdicts if v.detection_s is not None]
    yield "all ranks down within 10 s of the decision", [v.down_s <= 10 for v in verdicts if v.down_s is not None]
    yield "slow but healthy runs without a kill", [not v.num_needless for v in verdicts if v.is_slow]
    yield "nothing left behind", [not v.leftovers for v in verdicts]


STOPPED = ("stop rank", "stop rank 0")


def _known(values: Iterable[bool | None]) -> list[bool]:
    return [value for value in values if value is not None]


def _share(part: Sequence[bool]) -> str:
    estimate = estimate_share(list(part))
    return f"{sum(part)} of {len(part)}, {estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def _count(values: Iterable[bool]) -> str:
    part = list(values)
    return f"{sum(part)}/{len(part)}" if part else "-"


def _middle(values: Iterable[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    return f"{known[len(known) // 2]:.1f} ({known[-1]:.1f})" if known else "-"


COLUMNS: tuple[Column, ...] = (
    ("runs", lambda part: str(len(part))),
    ("failed", lambda part: str(sum(bool(v.failures) for v in part))),
    ("recovered", lambda part: str(sum(v.is_recovered for v in part))),
    ("stopped, named", lambda part: str(sum(v.is_stopped_named for v in part))),
    ("identical", lambda part: _count(_known(v.is_identical for v in part))),
    ("lost <= 1", lambda part: _count(v.intervals_lost <= 1 for v in part if v.num_restores)),
    ("recall", lambda part: _count(found for v in part for found in v.found)),
    ("precision", lambda part: _count(right for v in part for right in v.named)),
    ("detected, steps", lambda part: _middle(v.detection_steps for v in part)),
    ("cause, s", lambda part: _middle(v.detection_s for v in part)),
    ("down, s", lambda part: _middle(v.down_s for v in part)),
    ("recovery, steps", lambda part: _middle(v.recovery_steps for v in part)),
    ("left", lambda part: str(sum(bool(v.leftovers) for v in part))),
)


def _cells(verdicts: Sequence[Verdict]) -> list[str]:
    return [text(verdicts) for _, text in COLUMNS]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
