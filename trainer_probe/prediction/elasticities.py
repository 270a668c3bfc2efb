"""Values of a hardware profile one by one: the profile with one of them changed, and what the change does to a step."""

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from fabrictune.hardware.profile import HardwareProfile

STEP = 0.1  # of a value, up
_NOT_COUNTED = frozenset(
    {"host.num_gpus", "host.num_sockets", "gpu.compute_capability", "gpu.memory.capacity", "gpu.num_multiprocessors"}
)


@dataclass(frozen=True, kw_only=True)
class Elasticity:
    """What a value of the profile does to a step."""

    key: str  # dotted, as in a profile's file
    source: str
    uncertainty: float  # of the value, half of its 90 % interval
    elasticity: float  # relative change of the step over that of the value, for small changes

    @property
    def is_better_larger(self) -> bool:
        """Whether the step gets shorter with a larger value."""
        return self.elasticity < 0

    @property
    def gain_fraction(self) -> float:
        """What the step loses when the value improves by a tenth."""
        return abs(self.elasticity) * STEP


def changed_profiles(profile: HardwareProfile) -> Iterator[tuple[str, HardwareProfile]]:
    """Yield the key of every value that is a number above zero, and the profile with that value a tenth larger."""
    names = profile.field_names()
    for key, value in profile.values().items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        if is_number and key not in _NOT_COUNTED and not _is_unpriced(key):
            yield key, with_value(profile, [*key.split(".")[:-1], names[key]], _larger(value))


def _is_unpriced(key: str) -> bool:
    """Return whether a value prices no step: best rates, and a factor whose uncertainty is that of its fit."""
    return key.endswith(".best") or key in ("nvlink.rate", "software.work_factor")


def _larger(value: float) -> float:
    return round(value * (1 + STEP)) if isinstance(value, int) else value * (1 + STEP)


def with_value(spec: Any, path: list[str], value: float) -> Any:
    """Return a spec with the field at a path changed."""
    first, *others = path
    assert is_dataclass(spec), "a path leads through specs"
    changed = with_value(getattr(spec, first), others, value) if others else value
    return replace(spec, **{first: changed})  # type: ignore[type-var]  # of the spec's own type
