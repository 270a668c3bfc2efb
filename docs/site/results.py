"""Pages of results, from the JSON that `conformance` and `make bench` write; without it, what would be there."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docs.site.markdown import cell, plain
from docs.site.places import ROOT
from fabrictune.conformance.suite import SUBJECTS

CONFORMANCE = ROOT / "build" / "conformance.json"
BENCHMARKS = ROOT / "benchmarks" / "results.json"
MISSING = "This site was built without results: {command}, then `make site`.\n"


def conformance_page(path: Path = CONFORMANCE) -> str:
    """Return the page of published results: expected and actual values, misses included."""
    return "\n".join(("# Conformance\n", *_conformance_lines(path))) + "\n"


def benchmarks_page(reports: Sequence[str], path: Path = BENCHMARKS) -> str:
    """Return the page of timed cases: each figure with its spread, command and machine, and the dated reports."""
    links = [f"- [{Path(report).stem}]({Path(report).relative_to('benchmarks')})" for report in reports]
    return "\n".join(("# Benchmarks\n", *_benchmark_lines(path), "\n## Reports\n", *links)) + "\n"


def _conformance_lines(path: Path) -> Iterator[str]:
    yield "Published results that fabrictune claims to reproduce. Trust A is exact: closed forms, published code."
    yield "`fabrictune conformance` runs them again.\n"
    if not path.exists():
        yield MISSING.format(command="`make conformance`")
        yield "| subject | groups of cases |\n| --- | --- |"
        yield from (
            f"| {subject} | {', '.join(f'`{group}`' for group in groups)} |" for subject, groups in SUBJECTS.items()
        )
        return
    cases: list[dict[str, Any]] = json.loads(path.read_text())
    yield f"{sum(case['passed'] for case in cases):,} of {len(cases):,} cases are within their tolerance.\n"
    subjects = dict.fromkeys(case["name"].partition(".")[0] for case in cases)
    for subject in subjects:
        yield f"\n## {subject}\n\n| case | expected | actual | tolerance | trust | result | source |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        yield from (_case(case) for case in cases if case["name"].partition(".")[0] == subject)


def _case(case: dict[str, Any]) -> str:
    low, high = case["tolerance"]
    actual = "none" if case["actual"] is None else f"{case['actual']:.6g}"
    values = (f"{case['expected']:.6g} {plain(case['unit'])}", actual, f"{low:.6g} to {high:.6g}", case["trust"])
    result = "pass" if case["passed"] else "**miss**"
    return f"| `{case['name']}` | {' | '.join(values)} | {result} | {cell(plain(case['source']))} |"


def _benchmark_lines(path: Path) -> Iterator[str]:
    yield "Timed cases of `make bench`. \n"
    if not path.exists():
        yield MISSING.format(command="`make bench`")
        return
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    for machine in dict.fromkeys(map(_machine, rows)):
        yield f"\n{machine}\n\n| case | value | spread | command |\n| --- | --- | --- | --- |"
        yield from (_benchmark(row) for row in rows if _machine(row) == machine)


def _machine(row: dict[str, Any]) -> str:
    return plain(", ".join(f"{name} {value}" for name, value in row["machine"].items()))


def _benchmark(row: dict[str, Any]) -> str:
    value = f"{row['value']:,.2f} {plain(row['unit'])}"
    return f"| {cell(plain(row['name']))} | {value} | {cell(plain(str(row['spread'])))} | `{row['command']}` |"
