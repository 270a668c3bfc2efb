"""The commands that a user has, asked for their answer as JSON, and what they name."""

import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks.studies.hangs.formats import FIRST_PID
from benchmarks.studies.planted_faults.trials import Name
from fabrictune.cli.main import run
from fabrictune.foundation.children import module_command
from fabrictune.observability.hangs.evidence import UNKNOWN

HANG, LOSSY_LINK = "hang", "lossy link"
LIMIT_S = 300.0


def stragglers_of(folder: Path, out: Path) -> tuple[Name, ...]:
    """Return what `train stragglers` names in a run's spans."""
    answer = ask(["train", "stragglers", str(folder), "--out", str(out), "--json"])
    return tuple(Name(cause=row["cause"], where=tuple(row["ranks"].split())) for row in answer["stragglers"])


def lossy_links_of(counts: Path, out: Path) -> tuple[Name, ...]:
    """Return what `rdma gray-loss` names in counts by path."""
    answer = ask(["rdma", "gray-loss", str(counts), "--out", str(out), "--json"])
    return tuple(
        Name(cause=LOSSY_LINK, where=tuple(sorted(name.strip() for name in row["links"].split(";"))))
        for row in answer["lossy_links"]
    )


def hang_of(evidence: Path, out: Path, *, is_apart: bool = False) -> tuple[Name, ...]:
    """Return what `diagnose` names in what a job left, or in a job that runs; as a process of its own if asked."""
    words = ["diagnose", str(evidence), "--out", str(out), "--json"]
    answer = _ask_apart(words) if is_apart else ask(words)
    if not answer["hangs"]:
        return ()
    ranks = (
        process["pid"] - FIRST_PID if process["rank"] == UNKNOWN else process["rank"] for process in answer["processes"]
    )
    return (Name(cause=HANG, where=tuple(map(str, sorted(ranks)))),)


def ask(words: list[str]) -> dict[str, Any]:
    """Return the answer of a command that ends with or without findings."""
    answer, errors = StringIO(), StringIO()
    with redirect_stdout(answer), redirect_stderr(errors):
        code = run(words)
    return _read(words, code, answer.getvalue(), errors.getvalue())


def _ask_apart(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        module_command("fabrictune", *words), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    return _read(words, done.returncode, done.stdout, done.stderr)


def _read(words: list[str], code: int, answer: str, errors: str) -> dict[str, Any]:
    if code not in (0, 1):
        raise RuntimeError(f"fabrictune {' '.join(words)} ends with {code}: {errors[-2000:]}")
    found: dict[str, Any] = json.loads(answer)
    return found
