"""Stack dumps of ranks that hang: each writes its Python stacks to a file on a signal.

The interpreter's own handler (`faulthandler`) writes them and needs no lock, so that a rank that hangs in a library
answers too.
"""

import faulthandler
import os
import signal
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from fabrictune.foundation.time_limits import scaled

PATIENCE_S = 1.0  # for answers
WRITING_S = 0.02  # a file without growth for this long is complete
FRAMES = 4  # innermost calls in a report
_SIGNAL = signal.SIGUSR1


def answer(path: Path) -> None:
    """Let this process write the stacks of all its threads to a file on each request."""
    faulthandler.register(_SIGNAL, file=path.open("w"), all_threads=True)


def ask(paths: Mapping[int, tuple[int, Path]], patience_s: float | None = None) -> list[str]:
    """Return a line for each distinct stack with its ranks; `paths` maps ranks to process and file."""
    for process, _ in paths.values():
        with suppress(ProcessLookupError):  # it has just ended, as others do with the rank that failed
            os.kill(process, _SIGNAL)
    _await_answers([path for _, path in paths.values()], scaled(PATIENCE_S) if patience_s is None else patience_s)
    ranks_at = defaultdict[str, list[int]](list)
    for rank, (_, path) in paths.items():
        ranks_at[_describe(path.read_text() if path.exists() else "")].append(rank)
    return [f"rank {', '.join(map(str, ranks))}: {place}" for place, ranks in ranks_at.items()]


def _await_answers(paths: list[Path], patience_s: float) -> None:
    """Return when all files have content and stop growing, or after so long."""
    deadline_s, last = time.monotonic() + patience_s, [0] * len(paths)
    while time.monotonic() < deadline_s:
        time.sleep(scaled(WRITING_S))
        sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
        if all(sizes) and sizes == last:
            return
        last = sizes


def _describe(text: str) -> str:
    """Return the innermost calls of each thread, the newest thread first, from the output of `faulthandler`."""
    threads = []
    for part in text.split("\n\n"):
        calls = [line.strip() for line in part.splitlines() if line.startswith("  File ")]
        if calls:
            threads.append(" < ".join(map(_shorten, calls[:FRAMES])))
    return "; ".join(threads) or "no answer"


def _shorten(call: str) -> str:
    """Return `performing.py:94 _carry_out` for `File "…/performing.py", line 94 in _carry_out`."""
    path, _, rest = call.removeprefix('File "').partition('", line ')
    number, _, name = rest.partition(" in ")
    return f"{Path(path).name}:{number} {name}"
