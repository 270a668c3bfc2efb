"""Secret that a worker and the controller of a measurement share, as a file."""

from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import read_foreign

LEAST_CHARACTERS = 16
MAX_BYTES = 4096


def read_token(path: Path) -> str:
    """Return the token in a file; raises InputError for a file that cannot be one."""
    try:
        token = read_foreign(path, max_bytes=MAX_BYTES).decode().strip()
    except UnicodeDecodeError as error:
        raise InputError(Mistake(where=str(path), found=f"no token ({error})")) from error
    if len(token) < LEAST_CHARACTERS:
        found, next_step = f"a token of {len(token)} characters", f"openssl rand -hex 32 > {path}"
        allowed = f"{LEAST_CHARACTERS} or more"
        raise InputError(Mistake(where=str(path), found=found, allowed=allowed, next_step=next_step))
    return token
