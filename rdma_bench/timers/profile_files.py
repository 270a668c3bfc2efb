"""A timer profile as a file: JSON as it is written, or YAML by hand, with units in its values as in a scenario.

`fabrictune rdma timers measure` writes one for the adapter at hand; predictions and the simulator read it.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fabrictune.foundation.documents import load_yaml
from fabrictune.foundation.errors import InputError, require_one_of
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES, TimerProfile, unknown_adapter

MAX_PROFILE_BYTES = 2**16


def find_profile(name: str, *, where: str) -> TimerProfile:
    """Return a known profile by its name, or the one in a file if the text has a dot or a slash; raises InputError."""
    if "." in name or "/" in name:
        return read_profile(Path(name))
    if mistake := unknown_adapter(name, where=where):
        raise InputError(mistake)
    return KNOWN_PROFILES[require_one_of(name, tuple(KNOWN_PROFILES), where=where, what="profile", error=InputError)]


def read_profile(path: Path) -> TimerProfile:
    """Return the profile in a file; raises InputError with every mistake of it."""
    document = load_yaml(path, max_bytes=MAX_PROFILE_BYTES)
    try:
        return bind(TimerProfile, document.tree, folder=path.parent)
    except ValidationError as error:
        raise InputError(*to_mistakes(error, document)) from None


def write_profile(profile: TimerProfile, path: Path) -> Path:
    """Write a profile for `read_profile`; raises InputError where nothing can be written. Returns the path."""
    timers = {key_of(name): value for name, value in asdict(profile.timers).items() if value is not None}
    timers["early"] = [f"{time_ns} ns" for time_ns in profile.timers.early_ns]
    content = {name: value for name, value in asdict(profile).items() if value} | {"timers": timers}
    if profile.tried:
        content["tried"] = [_with_units(asdict(one)) for one in profile.tried]
    with replaced_file(path) as half:
        half.write_text(json.dumps(content, indent=2) + "\n")
    return path


def _with_units(values: dict[str, Any]) -> dict[str, Any]:
    """Return values by the keys of a file, times with their unit."""
    return {key_of(name): f"{value} ns" if name.endswith("_ns") else value for name, value in values.items()}
