"""What is wrong, first: findings by severity, alike ones together, and the one sentence a page opens with."""

from collections.abc import Sequence
from dataclasses import dataclass

from foundation.records import Finding, Severity
from foundation.units import format_duration
from reports.blocks import plural
from reports.kpi_table import format_kpi
from reports.kpis import Kpi, run_kpis
from reports.runs import Run

MAX_GROUPS = 40
MAX_ALIKE = 50  # findings of one group that are listed

HEADLINE = ("JCT", "P99 FCT", "Highest offered load", "PFC pause duration", "Packet drop")  # indicators above the fold


@dataclass(frozen=True, kw_only=True)
class FindingGroup:
    """Findings of one rule and severity in one run: the first in full, the others by entity."""

    label: str
    finding: Finding
    others: tuple[Finding, ...]
    num_left_out: int


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One number above the fold, for each run that has it."""

    name: str
    values: tuple[tuple[str, str], ...]  # (run, value)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The top of the page."""

    sentence: str
    worst: str  # severity, or "" where nothing was found
    tiles: tuple[Tile, ...]
    groups: tuple[FindingGroup, ...]
    num_groups_left_out: int


def judge(runs: Sequence[Run]) -> Verdict:
    """Return the top of a page on these runs."""
    groups = group_findings(runs)
    worst = groups[0].finding.severity.value if groups else ""
    indicators = {run.label: {kpi.name: kpi for kpi in run_kpis(run)} for run in runs}
    return Verdict(
        sentence=" ".join(part for part in (_compare(indicators), _count(runs)) if part),
        worst=worst,
        tiles=_tiles(indicators),
        groups=tuple(groups[:MAX_GROUPS]),
        num_groups_left_out=max(len(groups) - MAX_GROUPS, 0),
    )


def group_findings(runs: Sequence[Run]) -> list[FindingGroup]:
    """Return the findings of all runs, most severe first, those of one rule and run together."""
    alike: dict[tuple[int, int, str], list[Finding]] = {}
    for order, run in enumerate(runs):
        for finding in run.record.findings:
            alike.setdefault((-finding.severity.rank, order, finding.id), []).append(finding)
    return [
        FindingGroup(
            label=runs[order].label,
            finding=findings[0],
            others=tuple(findings[1 : 1 + MAX_ALIKE]),
            num_left_out=max(len(findings) - 1 - MAX_ALIKE, 0),
        )
        for (_, order, _), findings in sorted(alike.items(), key=lambda item: item[0][:2])
    ]


def _count(runs: Sequence[Run]) -> str:
    counts = dict.fromkeys(reversed(Severity), 0)
    for run in runs:
        for finding in run.record.findings:
            counts[finding.severity] += 1
    said = [plural(count, f"{severity.value} finding") for severity, count in counts.items() if count]
    return f"{', '.join(said)}." if said else "Nothing to report."


def _compare(indicators: dict[str, dict[str, Kpi]]) -> str:
    """Return how much longer the slowest run took than the fastest, or "" for fewer than two."""
    times = {label: kpis["JCT"].value for label, kpis in indicators.items() if "JCT" in kpis}
    if len(times) < 2:
        return ""
    slow, fast = max(times, key=times.__getitem__), min(times, key=times.__getitem__)
    if times[slow] == times[fast]:
        return f"All runs take {format_duration(times[fast])}."
    ratio = times[slow] / times[fast]
    return f"{slow} takes {ratio:.2f} times as long as {fast}."


def _tiles(indicators: dict[str, dict[str, Kpi]]) -> tuple[Tile, ...]:
    tiles = []
    for name in HEADLINE:
        values = tuple((label, format_kpi(kpis[name])) for label, kpis in indicators.items() if name in kpis)
        if values:
            tiles.append(Tile(name=name, values=values))
    return tuple(tiles)
