"""Declaration and validation of settings."""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake

MAX_BUFFER_BYTES = 2**30
LONGEST_WAIT_NS = 10**14  # 28 hours
MAX_PACKETS = 2**31 - 1
MAX_PORTS = 2**31 - 1
MAX_RATE_BPS = 10**15  # 1 Pbps
MAX_QUEUE_BYTES = 10**15
NUM_PRIORITIES = 8  # IEEE 802.1Q


def require(is_right: bool, where: str, found: str, allowed: str) -> None:
    """Raise InputError unless `is_right`."""
    if not is_right:
        raise InputError(Mistake(where=where, found=found, allowed=allowed))


def setting(default: Any, meaning: str, *, known_as: Sequence[str] = ()) -> Any:
    """Return a dataclass field with a default, a description, and what others call its key."""
    return field(default=default, metadata={"help": meaning, "known_as": tuple(known_as)})
