"""Warnings for people: one line on stderr each, without the place in our code they come from."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.visible_text import printable


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print what a command warns of, each text once; warnings of others are shown as ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", FabrictuneWarning)
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, FabrictuneWarning):
                print(f"warning: {printable(str(message))}", file=sys.stderr)
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
