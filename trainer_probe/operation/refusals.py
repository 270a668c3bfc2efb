"""Refusals of a backend, one after another: when it is asked again, and after how many no more is hoped for.

A quota, a limit on submissions or a controller that restarts refuses for a while. The wait doubles with each refusal,
so that ten of them are eight and a half minutes; a job that can run without the node goes on asking, ever more seldom.
"""

import math
from dataclasses import dataclass

FIRST_S = 1.0
LIMIT_S = 600.0  # between two requests
MAX_REFUSALS = 10  # of what a job cannot do without
MAX_LETTERS = 400  # of a cause


@dataclass(frozen=True, kw_only=True)
class Refusals:
    """The refusals since a request was last granted."""

    number: int = 0
    cause: str = ""  # of the last
    until_s: float = -math.inf  # the backend is not asked before

    def after(self, cause: str, now_s: float) -> "Refusals":
        """Return the refusals with one more."""
        wait_s = min(LIMIT_S, FIRST_S * 2.0 ** min(self.number, 60))
        return Refusals(number=self.number + 1, cause=cause, until_s=now_s + wait_s)

    def asked(self) -> "Refusals":
        """Return the same while a request is under way."""
        return Refusals(number=self.number, cause=self.cause, until_s=math.inf)


def line_of(error: Exception) -> str:
    """Return an error as one line of bounded length."""
    return " ".join(str(error).split())[:MAX_LETTERS]
