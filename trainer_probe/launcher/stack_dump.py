"""Where ranks stand that have not ended: each writes its Python stacks to a file when it is asked by a signal.

The stacks are written by the interpreter's own handler (`faulthandler`), which needs no lock, so that also a rank that
hangs in a library answers.
"""

import faulthandler
import os
import signal
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from fabrictune.foundation.time_limits import scaled

PATIENCE_S = 1.0  # for answers; a rank that is not asked again has no need to hurry
WRITING_S = 0.02  # a file that has not grown for so long is complete
FRAMES = 4  # innermost calls that are shown
_SIGNAL = signal.SIGUSR1


def answer(path: Path) -> None:
    """Have this process write the stacks of all its threads to a file whenever it is asked."""
    faulthandler.register(_SIGNAL, file=path.open("w"), all_threads=True)


def ask(paths: Mapping[int, tuple[int, Path]]) -> list[str]:
    """Return a line for each place where ranks stand, with those ranks; `paths` gives process and file by rank."""
    for process, _ in paths.values():
        os.kill(process, _SIGNAL)
    _await_answers([path for _, path in paths.values()])
    ranks_at = defaultdict[str, list[int]](list)
    for rank, (_, path) in paths.items():
        ranks_at[_describe(path.read_text() if path.exists() else "")].append(rank)
    return [f"rank {', '.join(map(str, ranks))}: {place}" for place, ranks in ranks_at.items()]


def _await_answers(paths: list[Path]) -> None:
    """Return when all files have something in them and grow no more, or patience ends."""
    deadline_s, last = time.monotonic() + scaled(PATIENCE_S), [0] * len(paths)
    while time.monotonic() < deadline_s:
        time.sleep(scaled(WRITING_S))
        sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
        if all(sizes) and sizes == last:
            return
        last = sizes


def _describe(text: str) -> str:
    """Return the innermost calls of each thread, the newest thread first, from what `faulthandler` has written."""
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
