"""Settings of the rules: how long is too long, and how often is too often.

A limit on time is a number of medians of what was measured plus a number of their deviations, and never under a floor;
before anything was measured it is the floor of its section. What is counted is counted within a window, so that a fault
a week apart is not a pattern.

Source: MegaScale (NSDI'24) 4.2, missing heartbeats and stalled traffic; NVIDIA Resiliency Extension 0.7, section
timeouts and restart limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from fabrictune.foundation.errors import InputError, Mistake, nearest_name


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """Limits of the diagnosis and of the decisions; all can be set by name."""

    # silence
    heartbeat_limit_s: float = 10.0  # without a heartbeat, a node's executor is lost
    settle_s: float = 0.5  # an error that may be another's consequence waits until all nodes reported this much later

    # a rank that is stopped
    stopped_medians: float = 2.0  # of a step, in which a rank in state T neither worked nor changed its page
    stopped_floor_s: float = 0.25
    unmeasured_stopped_s: float = 5.0  # before a step was measured

    # a rank that does nothing, in steps
    hang_medians: float = 10.0
    hang_deviations: float = 10.0
    hang_floor_s: float = 8.0
    busy_factor: float = 10.0  # more patience with a rank that uses its processor
    busy_idle_s: float = 2.0  # without a processor's time for so long, a rank is not busy
    slow_share: float = 0.75  # of the last steps, in which others wait for one rank, before it is named slow
    slow_rise: float = 0.5  # more of them than of the steps before

    # sections that are not steps: medians of what was measured, or the floor
    start_floor_s: float = 600.0
    first_step_floor_s: float = 600.0
    load_floor_s: float = 1800.0
    save_floor_s: float = 60.0
    section_medians: float = 5.0

    # losses
    spike_deviations: float = 12.0
    min_losses: int = 16  # before a spike is one

    # storages
    slow_save_factor: float = 10.0  # of the median save, and at least save_floor_s
    full_bytes: int = 0  # free space at or under which a storage is full

    # decisions
    node_faults: int = 3  # of one node within the window: it is replaced
    window_s: float = 3600.0
    same_error_limit: int = 3  # with the same error at the same step, no other node to try
    restart_limit: int = 10  # without a newer checkpoint or, where none was saved, a later step
    backoff_s: float = 1.0  # before the second restart without progress, doubled each time
    backoff_limit_s: float = 60.0

    @classmethod
    def of(cls, values: Mapping[str, Any], *, where: str = "rules") -> Self:
        """Return settings with these values; raises InputError for unknown names and values that are no limits."""
        kinds = {entry.name: entry.type for entry in fields(cls)}
        mistakes = [*_unknown(values, kinds, where), *_unusable(values, kinds, where)]
        if mistakes:
            raise InputError(*mistakes)
        return cls(**{name: type(getattr(cls, name))(value) for name, value in values.items()})


def _unknown(values: Mapping[str, Any], kinds: Mapping[str, Any], where: str) -> list[Mistake]:
    return [
        Mistake(
            where=f"{where}.{name}", found="unknown key", allowed=", ".join(kinds), nearest=nearest_name(name, kinds)
        )
        for name in values
        if name not in kinds
    ]


def _unusable(values: Mapping[str, Any], kinds: Mapping[str, Any], where: str) -> list[Mistake]:
    return [
        Mistake(where=f"{where}.{name}", found=repr(value), allowed="a finite number, 0 or more")
        for name, value in values.items()
        if name in kinds and not _is_limit(value, is_whole=isinstance(getattr(RuleSettings, name), int))
    ]


def _is_limit(value: object, *, is_whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < float("inf") and (not is_whole or value == int(value))
