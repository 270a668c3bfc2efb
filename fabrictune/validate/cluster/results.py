"""Results of stages: what was measured beside what was expected, findings, and the file of each.

A stage is *done*, *skipped* (the nodes lack what it needs; it has not passed), *incomplete* (a node or part failed) or
*stopped* (Ctrl-C). Its file is written when it ends, whatever its state, so that a later run goes on from there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fabrictune.foundation.checks import Check, CheckReport
from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.records import parse_finding

MAX_STAGE_BYTES = 256 * 2**20
UNKNOWN = -1.0


class StageState(StrEnum):
    """How a stage ended."""

    DONE = "done"
    SKIPPED = "skipped"
    INCOMPLETE = "incomplete"
    STOPPED = "stopped"


class Verdict(StrEnum):
    """A measurement against its limit."""

    GOOD = "good"
    BAD = "bad"
    FAILED = "failed"  # not measured
    NO_LIMIT = "no limit"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measured value beside its prediction; UNKNOWN where there is none."""

    part: str
    subject: str
    unit: str
    measured: float
    predicted: float = UNKNOWN
    predicted_low: float = UNKNOWN
    predicted_high: float = UNKNOWN
    limit: float = UNKNOWN
    verdict: Verdict = Verdict.NO_LIMIT
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """What a stage found."""

    name: str
    state: StageState
    reason: str = ""
    measurements: Sequence[Measurement] = ()
    report: CheckReport = field(default_factory=CheckReport)
    notes: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)  # what later stages and exports take
    wall_s: float = 0.0


def write_result(result: StageResult, folder: Path) -> Path:
    """Write a stage's file, whole or not at all; raises InputError."""
    values = {
        **asdict(result),
        "report": {
            "checks": [check.as_json() for check in result.report.checks],
            "findings": [asdict(finding) for finding in result.report.findings],
        },
    }
    path = folder / f"{result.name}.json"
    with replaced_file(path) as half:
        half.write_text(json.dumps(values, indent=1) + "\n")
    return path


def read_results(folder: Path) -> dict[str, StageResult]:
    """Return the results that are there, by stage; raises InputError for a file that is none."""
    return {result.name: result for result in _read_all(folder)}


def _read_all(folder: Path) -> Iterator[StageResult]:
    for path in sorted(folder.glob("*.json")):
        tree = load_json(path, max_bytes=MAX_STAGE_BYTES).tree
        try:
            yield parse_result(tree)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            step = "remove the file, and its stage is run again"
            raise InputError(Mistake(where=str(path), found=f"no stage ({error})", next_step=step)) from None


def parse_result(tree: Any) -> StageResult:
    """Return the result in JSON values; raises TypeError, ValueError or KeyError for what is none."""
    report = tree["report"]
    return StageResult(
        name=str(tree["name"]),
        state=StageState(tree["state"]),
        reason=str(tree["reason"]),
        measurements=tuple(Measurement(**{**row, "verdict": Verdict(row["verdict"])}) for row in tree["measurements"]),
        report=CheckReport(
            checks=tuple(Check.from_json(row) for row in report["checks"]),
            findings=tuple(parse_finding(row) for row in report["findings"]),
        ),
        notes=tuple(map(str, tree["notes"])),
        data=dict(tree["data"]),
        wall_s=float(tree["wall_s"]),
    )
