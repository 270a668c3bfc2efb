"""A user's session at a terminal: at most five commands, the answer of each on one screen."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.patience import patience

ROOT = Path(__file__).parents[2]
MAX_COMMANDS = 5
SCREEN_LINES = 50
SCREEN_COLUMNS = 160  # a terminal over the whole of a 14-inch screen
TIMEOUT_S = 300


@dataclass
class Session:
    """Runs command lines in a folder and counts them; files that the user writes cost no command."""

    folder: Path
    commands: list[str] = field(default_factory=list)
    screen: str = ""  # of the last command, both outputs as a terminal mixes them

    def write(self, name: str, text: str) -> Path:
        """Write a file of the user's own into the folder, and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def command(self, line: str, *, exit_code: int = 0) -> str:
        """Run `fabrictune ...` as a process of its own and return what the screen shows; raises AssertionError.

        A sixth command, another exit code, and an answer larger than the screen fail.
        """
        self.commands.append(line)
        assert len(self.commands) <= MAX_COMMANDS, f"more than {MAX_COMMANDS} commands: {self.commands}"
        program, *arguments = shlex.split(line)
        assert program == "fabrictune", f"no command of this program: {line}"
        done = subprocess.run(
            [sys.executable, "-m", "fabrictune", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(SCREEN_COLUMNS), "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=patience(TIMEOUT_S),
            check=False,
        )
        self.screen = done.stdout
        assert done.returncode == exit_code, f"{line}: exit code {done.returncode}, not {exit_code}\n{self.screen}"
        self._require_one_screen(line)
        return self.screen

    def _require_one_screen(self, line: str) -> None:
        rows = self.screen.splitlines()
        height = sum(max(1, -(-len(row) // SCREEN_COLUMNS)) for row in rows)  # a long row wraps
        assert height <= SCREEN_LINES, f"{line}: {height} rows on a screen of {SCREEN_LINES}\n{self.screen}"
