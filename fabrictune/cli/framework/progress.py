"""A progress bar on stderr for what takes more than a second, on a terminal only."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fabrictune.foundation.progress import Progress

PATIENCE_S = 1.0


@contextmanager
def progress_bar(label: str, *, is_quiet: bool) -> Iterator[Progress | None]:
    """Give a function to call with the share that is done, or None where nobody would see a bar."""
    if is_quiet or not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label)
    try:
        yield bar.update
    finally:
        bar.close()


def say_on_terminal(line: str, *, is_quiet: bool) -> None:
    """Say on stderr what is going on where no share of it can be told, on a terminal only."""
    if not is_quiet and sys.stderr.isatty():
        print(line, file=sys.stderr)


class _Bar:
    """Draws nothing, and imports nothing to draw with, until patience has run out."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.started_s = time.monotonic()
        self.stop: Callable[[], None] | None = None
        self.draw: Progress | None = None

    def update(self, fraction: float, note: str = "", /) -> None:
        if self.draw is None and time.monotonic() - self.started_s > PATIENCE_S:
            self._open()
        if self.draw is not None:
            self.draw(fraction, note)

    def close(self) -> None:
        if self.stop is not None:
            self.stop()

    def _open(self) -> None:
        from rich import progress as rich_progress
        from rich.console import Console

        bar = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.BarColumn(),
            rich_progress.TextColumn("{task.percentage:>3.0f} %"),
            rich_progress.TextColumn("{task.fields[note]}"),
            rich_progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = bar.add_task(self.label, total=1.0, note="")
        bar.start()
        self.stop = bar.stop
        self.draw = lambda fraction, note="", /: bar.update(task, completed=fraction, note=note)
