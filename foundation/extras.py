"""Optional packages: a check before use that names the extra to install."""

import importlib.util

from fabrictune.foundation.errors import Mistake, UnavailableError


def require_extra(module: str, *, extra: str, where: str) -> None:
    """Raise UnavailableError where a module that comes with an extra is missing; `where` is what needs it."""
    if importlib.util.find_spec(module) is None:
        raise UnavailableError(
            Mistake(where=where, found=f"{module} is not installed", next_step=f'pip install "fabrictune[{extra}]"')
        )
