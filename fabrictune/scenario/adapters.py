"""Choice of a scenario's adapter, whose retransmission timers its NICs have.

`adapter: connectx-6`, or `adapter: ./my-nic.json`, a profile that `fabrictune rdma timers measure` wrote. What the
application asks of them is under `engine.transport`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import InputError, require_one_of
from fabrictune.foundation.settings.binding import Choice, Chosen, refuse
from fabrictune.rdma_bench.timers.profile_files import read_profile
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES, TimerProfile, unknown_adapter


@dataclass(frozen=True, kw_only=True)
class KnownAdapter:
    """One whose profile comes with the project."""


@dataclass(frozen=True, kw_only=True)
class ProfileFile:
    """A profile of the user's."""

    file: Path = field(metadata={"help": "a timer profile, as `rdma timers measure` writes it"})


def _choice_from_text(text: str) -> dict[str, Any]:
    if mistake := unknown_adapter(text, where="adapter"):
        refuse("mistake", str(mistake), mistake=mistake)
    return {"name": text} if text in KNOWN_PROFILES or not {".", "/"} & set(text) else {"file": text}


SPECS: Mapping[str, type] = {**dict.fromkeys(KNOWN_PROFILES, KnownAdapter), "file": ProfileFile}
ADAPTER_CHOICE = Choice("name", SPECS, _choice_from_text)
STANDARD_ADAPTER = Chosen(name="ibta", spec=KnownAdapter())


def adapter_named(text: str) -> Chosen:
    """Return the adapter of a known name or a profile's file."""
    if mistake := unknown_adapter(text, where="adapter"):
        raise InputError(mistake)
    mapping = _choice_from_text(text)
    if "file" in mapping:
        return Chosen(name="file", spec=ProfileFile(file=Path(text)))
    require_one_of(text, tuple(KNOWN_PROFILES), where="adapter", what="adapter", error=InputError)
    return Chosen(name=text, spec=KnownAdapter())


def profile_of(adapter: Chosen) -> TimerProfile:
    """Return an adapter's timers; raises InputError for a file that is no profile."""
    return read_profile(adapter.spec.file) if isinstance(adapter.spec, ProfileFile) else KNOWN_PROFILES[adapter.name]
