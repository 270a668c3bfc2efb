"""Settings on the command line: `num_hosts=32`, `nic_rate=200 Gbps`."""

import json
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake


def parse_setting(setting: str) -> tuple[str, Any]:
    """Return key and value; numbers, truths and lists as JSON writes them, anything else as text. Raises InputError."""
    key, is_there, text = (part.strip() for part in setting.partition("="))
    if not is_there:
        raise InputError(Mistake(where=setting, found="no setting", allowed="KEY=VALUE, for example radix=8"))
    try:
        return key, json.loads(text)
    except (ValueError, RecursionError):
        return key, text
