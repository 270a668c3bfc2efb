"""Whether torch can be had; it is an extra, and heavy, so nothing imports it before it is needed."""

import importlib.util

from foundation.errors import Mistake, UnavailableError


def require_torch() -> None:
    """Raise UnavailableError, saying how to install it, where torch is missing."""
    if importlib.util.find_spec("torch") is None:
        raise UnavailableError(
            Mistake(
                where="trainer",
                found="torch is not installed",
                next_step='pip install "fabrictune[train]"',
            )
        )
