"""Cut and restoration of a path, by programs that this host's owner named on the worker's command line.

No peer of the worker can name others. What was cut is healed at the latest when the measurement ends.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled

COMMAND_TIMEOUT_S = 30.0
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True)
class CutCommands:
    """The words of both programs; without them no path can be cut."""

    cut: tuple[str, ...] = ()
    heal: tuple[str, ...] = ()


class Cutter:
    """Cuts this host's path, and knows whether it has."""

    def __init__(self, commands: CutCommands) -> None:
        self._commands = commands
        self.is_cut = False

    def cut(self) -> None:
        """Make the path dead; raises UnavailableError where there is no command, or it fails."""
        if not self._commands.cut or not self._commands.heal:
            next_step = "start the receiver's worker with --cut-command and --heal-command"
            raise UnavailableError(Mistake(where="cut", found="no command that cuts the path", next_step=next_step))
        self.is_cut = True
        _run(self._commands.cut)

    def heal(self) -> None:
        """Make the path alive again, if it was cut."""
        if self.is_cut:
            _run(self._commands.heal)
            self.is_cut = False


def _run(command: Sequence[str]) -> None:
    try:
        ran = subprocess.run(  # noqa: S603 - the words were given on this host's command line
            command,
            capture_output=True,
            text=True,
            timeout=scaled(COMMAND_TIMEOUT_S),
            check=False,
            start_new_session=True,  # an interrupt at the terminal is the worker's to answer
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(Mistake(where=command[0], found=str(error))) from error
    if ran.returncode:
        words = ran.stderr.strip()[:_SHOWN_CHARACTERS]
        raise UnavailableError(Mistake(where=command[0], found=f"ended with {ran.returncode}: {words}"))
