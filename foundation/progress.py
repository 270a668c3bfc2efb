"""Progress reports of long work: one callback type for every package, and its share for one stage of several."""

from typing import Protocol


class Progress(Protocol):
    """A callback with the completed fraction, 0 to 1, and a short note to show with it."""

    def __call__(self, fraction: float, note: str = "", /) -> None: ...


def stage(progress: Progress | None, number: int, count: int) -> Progress | None:
    """Return the progress callback for stage `number` of `count` equal ones, or None where nobody listens."""
    if progress is None:
        return None
    return lambda fraction, note="", /: progress((number + fraction) / count, note)
