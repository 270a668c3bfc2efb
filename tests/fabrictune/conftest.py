"""How the tests of the roof call the command line: as a user does, in a process of its own."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import patience

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Return a function that runs `fabrictune` with arguments, in the test's own folder unless told otherwise."""

    def run(
        *arguments: str | Path, cwd: Path = tmp_path, max_memory_bytes: int = 0
    ) -> subprocess.CompletedProcess[str]:
        def limit_memory() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (max_memory_bytes, max_memory_bytes))

        settings: dict[str, Any] = {"preexec_fn": limit_memory} if max_memory_bytes else {}
        return subprocess.run(
            [sys.executable, "-m", "fabrictune", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=patience(TIMEOUT_S),
            check=False,
            **settings,
        )

    return run


@pytest.fixture
def scenarios() -> Path:
    """Return the folder of the bundled scenarios."""
    return ROOT / "scenarios"
