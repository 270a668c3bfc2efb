"""Time limits that only guard against hanging, and their scale on a slow machine.

A limit such as "an answer within 30 s" is chosen on a machine with nothing else to do. Where others share its
processors, the environment variable `FABRICTUNE_TIMEOUT_SCALE` multiplies all such limits. What a user sets stays.
"""

import os

from fabrictune.foundation.errors import InputError, Mistake

SCALE_VARIABLE = "FABRICTUNE_TIMEOUT_SCALE"
MAX_SCALE = 30.0


def scaled(limit_s: float) -> float:
    """Return a limit times the environment's scale; raises InputError for a scale outside 1 to MAX_SCALE."""
    text = os.environ.get(SCALE_VARIABLE) or "1"
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 1 <= scale <= MAX_SCALE:
        raise InputError(Mistake(where=SCALE_VARIABLE, found=repr(text), allowed=f"1 to {MAX_SCALE:g}"))
    return limit_s * scale
