"""Limits of the engine's packed events and indices."""

from fabrictune.foundation.errors import InputError, Mistake

PATH_END = 2**32 - 1
NO_ROUTE = 2**32 - 2  # in a path: from here on the network knows no way
NO_PRIORITY = 2**32 - 1
LAST_INSTANT_PS = 2**62 - 1  # 53 days; twice that is what 64 bits hold, so no sum of two times overflows
MAX_IDS = 2**24  # ports and queue pairs an event can name


def require_ids(number: int, what: str) -> None:
    """Raise InputError if there are more ports or queue pairs than an event can name."""
    if number >= MAX_IDS:
        raise InputError(Mistake(where="network", found=f"{number} {what}", allowed=f"fewer than {MAX_IDS}"))
