"""Entries of a journal: an event's values as JSON, bounded, and back."""

import json
from collections.abc import Mapping
from typing import Any

from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.trainer_probe.operation.events import Event

MAX_EVENT_BYTES = 1 << 20
Origin = tuple[str, int]  # a sender, and its number of the event


def encode_values(values: Mapping[str, Any]) -> str:
    """Return an event's values as JSON."""
    body = json.dumps(values, separators=(",", ":"))
    assert len(body) <= MAX_EVENT_BYTES, f"an event of {len(body):,} bytes"
    return body


def decode_event(number: Any, elapsed_s: Any, time_ns: Any, kind: Any, body: Any, *, where: str) -> Event:
    """Return the event of a row; raises RecordError where it is none."""
    try:
        values = json.loads(body)
        if isinstance(values, dict) and isinstance(kind, str):
            return Event(number=int(number), elapsed_s=float(elapsed_s), time_ns=int(time_ns), kind=kind, values=values)
    except (ValueError, TypeError, RecursionError):
        pass
    raise RecordError(Mistake(where=f"{where}: event {number}", found="damaged"))
