"""Settings in which two configurations of the packet engine differ, by key."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from fabrictune.foundation.settings.quantities import format_setting, key_of
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.queues import PriorityConfig

PARTS = ("ecn", "pfc", "buffer", "queues")  # what switches do; the rest is of NICs, hosts and the engine


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One key with two values; None: left open, or not there."""

    key: tuple[str, ...]  # names of fields, with the priority as a digit: ("3", "ecn", "kmin_bytes")
    before: Any
    after: Any

    @property
    def text(self) -> str:
        """The key and its new value, for people."""
        *outer, name = self.key
        first, rest = (f"priority {outer[0]}", outer[1:]) if outer[0].isdigit() else ("engine", outer)
        where = ".".join((first, *map(key_of, rest)))
        is_number = isinstance(self.after, int | float) and not isinstance(self.after, bool)
        value = format_setting(name, self.after) if is_number else self.after
        return f"{where}.{key_of(name)} = {'open' if value is None else value}"


def differences(before: PacketConfig, after: PacketConfig) -> tuple[Difference, ...]:
    """Return what a switch does otherwise, each queue's marking as it is in effect; of priorities that both have."""
    first, second = _effective(before), _effective(after)
    common = {str(number) for number in set(before.queues.numbers) & set(after.queues.numbers)}
    keys = (key for key in dict.fromkeys((*first, *second)) if key[0] in common or not key[0].isdigit())
    found = (Difference(key=key, before=first.get(key), after=second.get(key)) for key in keys)
    return tuple(entry for entry in found if entry.before != entry.after)


def _effective(config: PacketConfig) -> dict[tuple[str, ...], Any]:
    values: dict[tuple[str, ...], Any] = {}
    for part in PARTS:
        values |= {(part, *key): value for key, value in _leaves(getattr(config, part))}
    if config.queues.priorities:
        values = {key: value for key, value in values.items() if key[0] != "ecn"}
    for entry in config.queues.priorities:
        values |= {(str(entry.priority), *key): value for key, value in _of_priority(entry, config)}
    return values


def _of_priority(entry: PriorityConfig, config: PacketConfig) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in _leaves(entry):
        if key[0] not in ("ecn", "priority"):
            yield key, value
    for key, value in _leaves(entry.ecn or config.ecn):
        yield ("ecn", *key), value


def _leaves(spec: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the fields of a dataclass and of those in it; lists of priorities are left out."""
    for entry in fields(spec):
        value = getattr(spec, entry.name)
        if is_dataclass(value):
            yield from (((entry.name, *key), inner) for key, inner in _leaves(value))
        elif not isinstance(value, tuple):
            yield (entry.name,), value
