"""Link rate that a law's default steps were chosen for, and what to say on links of another.

A step of a rate in bits per second is a larger share of a slow link than of a fast one: on a link of ten times the rate
a law with a fixed step takes ten times as long to recover. A law with such steps declares `TUNED_FOR`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from fabrictune.foundation.units import format_rate

MOST_FACTOR = 2.0  # between the rates; closer ones are within what any tuning forgives


@dataclass(frozen=True, kw_only=True)
class TunedFor:
    """The rate of the links for which default values were chosen."""

    rate_bps: float
    steps: tuple[str, ...]  # parameters in bits per second that go with it
    source: str
    instead: str = ""  # another law for these links


def tuning_note(name: str, module: ModuleType, parameters: Mapping[str, float], rate_bps: float) -> str:
    """Return what to say of a law on links of `rate_bps`; "" where its steps were set, or are for such links."""
    tuned: TunedFor | None = getattr(module, "TUNED_FOR", None)
    if tuned is None or 1 / MOST_FACTOR < rate_bps / tuned.rate_bps < MOST_FACTOR:
        return ""
    defaults = {one.name: one.default for one in module.PARAMETERS}
    kept = [step for step in tuned.steps if parameters.get(step) == defaults[step]]
    if not kept:
        return ""
    factor = rate_bps / tuned.rate_bps
    steps = ", ".join(f"{step.removesuffix('_bps')} {format_rate(defaults[step])}" for step in kept)
    scaled = ", ".join(f"{step.removesuffix('_bps')}: {format_rate(defaults[step] * factor)}" for step in kept)
    return (
        f"law {name}: {steps} of its defaults are for links of {format_rate(tuned.rate_bps)} ({tuned.source}), not of "
        f"{format_rate(rate_bps)}; in proportion, law.parameters {{{scaled}}}"
        + (f"; or law {tuned.instead}" if tuned.instead else "")
    )
