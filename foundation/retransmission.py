"""Retransmission timers of a reliable queue pair: when it sends again, and when it fails.

A queue pair has a list of waits. When the first has passed without progress it goes back and sends again, then the
second runs, and so on; when the last has passed it fails. Progress begins the list anew. Every
adapter turns the timeout exponent T and the retry count R of an application into such a list, and `TimerModel` is the
few numbers that make one.

The standard: a wait is 4.096 us * 2**T, and R retries make R + 1 waits. A ConnectX-6 counts T as 16 at least and waits
twice the nominal; a series of early retransmissions replaces the first retry. It is taken as long as the step from
one to the next is no longer than the nominal timeout. R - 1 waits follow, the first of them no longer than the series'
next step.

Source: InfiniBand Architecture Specification 1.4, volume 1, 9.7.6.1.3; unionxic/rdma-fault-characterization,
harness/ack_timeout (ConnectX-6 VPI, firmware 20.43.4100): tables A1, A2 and B, and the trials out of sample.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake

UNIT_PS = 4_096_000
MAX_EXPONENT = 31
MAX_RETRIES = 7
NEVER_PS = 2**62
ENDLESS_WAITS, ENDLESS_PS = 1024, 2**60  # so many waits, or so long (13 days), count as waits without end

# Wait of a sender whose receiver was not ready, by the timer code in the RNR NAK. Source: ibid., table 45.
RNR_TIMERS_MS = (
    *(655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92),
    *(2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52),
)
RNR_RETRIES_FOREVER = 7
_READING = 1e-3  # times are known to the millisecond, of seconds
_MULTIPLIERS = (0.1, 16.0)
_MOST_EARLY = 64


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True, kw_only=True)
class TimerModel:
    """An adapter's waits for a timeout exponent and a retry count; the defaults are the standard's."""

    floor_exponent: int = _setting(0, "a smaller timeout exponent counts as this one")
    interval_multiplier: float = _setting(1.0, "a regular wait, in nominal timeouts")
    first_wait_multiplier: float = _setting(1.0, "the first wait, in regular ones, where no early series comes first")
    extra_waits: int = _setting(1, "regular waits beyond the retries")
    early_ns: tuple[int, ...] = _setting((), "when early retransmissions go out, after the first sending")
    fewest_retries: int = _setting(0, "a retry count below which nothing is known")
    endless_retries: int | None = _setting(None, "a retry count that means no limit")

    def __post_init__(self) -> None:
        endless = 0 if self.endless_retries is None else self.endless_retries
        ranges = (
            ("floor_exponent", self.floor_exponent, 0, MAX_EXPONENT),
            ("interval_multiplier", self.interval_multiplier, *_MULTIPLIERS),
            ("first_wait_multiplier", self.first_wait_multiplier, *_MULTIPLIERS),
            ("extra_waits", self.extra_waits, -1, MAX_RETRIES),
            ("fewest_retries", self.fewest_retries, 0, MAX_RETRIES),
            ("endless_retries", endless, 0, MAX_RETRIES),
        )
        mistakes = [
            Mistake(where=name, found=f"{value:g}", allowed=f"{least:g} to {most:g}")
            for name, value, least, most in ranges
            if not least <= value <= most
        ]
        if len(self.early_ns) > _MOST_EARLY or any(later <= sooner for sooner, later in pairwise((0, *self.early_ns))):
            allowed = f"at most {_MOST_EARLY} times, each after the one before it"
            mistakes.append(Mistake(where="early_ns", found="times in another order, or too many", allowed=allowed))
        if mistakes:
            raise InputError(*mistakes)

    def interval_ps(self, exponent: int) -> int:
        """Return a regular wait; NEVER_PS for exponent 0, which turns the timer off."""
        nominal_ps = self._nominal_ps(exponent)
        return NEVER_PS if nominal_ps == NEVER_PS else round(nominal_ps * self.interval_multiplier)

    def waits_ps(self, exponent: int, retries: int) -> tuple[int, ...]:
        """Return the waits one after another; the last ends in failure, or is NEVER_PS where nothing does."""
        assert retries >= self.fewest_retries, "checked where it is set"
        interval_ps = self.interval_ps(exponent)
        if interval_ps == NEVER_PS:
            return (NEVER_PS,)
        is_endless = retries == self.endless_retries
        endless_waits = min(ENDLESS_WAITS, ENDLESS_PS // interval_ps)
        num_regular = endless_waits if is_endless else retries + self.extra_waits
        waits_ps = (*self._leading_waits_ps(exponent, num_regular), *(interval_ps,) * (num_regular - 1))
        return (*waits_ps, NEVER_PS) if is_endless else waits_ps or (interval_ps,)

    def _leading_waits_ps(self, exponent: int, num_regular: int) -> Iterator[int]:
        """Yield the early series, and the first of the regular waits if there is one."""
        first_regular_ps = self.interval_ps(exponent)
        if not self.early_ns:
            first_regular_ps = round(first_regular_ps * self.first_wait_multiplier)
        for earlier_ns, later_ns in pairwise((0, *self.early_ns)):
            step_ps = (later_ns - earlier_ns) * 1000
            if step_ps > self._nominal_ps(exponent) * (1 + _READING):
                first_regular_ps = min(first_regular_ps, step_ps)
                break
            yield step_ps
        if num_regular:
            yield first_regular_ps

    def _nominal_ps(self, exponent: int) -> int:
        return nominal_timeout_ps(0 if exponent == 0 else max(exponent, self.floor_exponent))


STANDARD = TimerModel()
_CONNECTX_6_EARLY_MS = (
    *(12.0, 71.0),  # in place of 4 to 11 between them, which vary from trial to trial
    *(138.0, 239.0, 440.4, 977.2, 1782.5, 3930.0, 8225.0),  # measured
    *(16_815.0, 33_995.0, 68_354.0, 137_074.0),  # beyond T 20 by the series' own rule: steps that double
)
CONNECTX_6 = TimerModel(
    floor_exponent=16,
    interval_multiplier=2.0,
    extra_waits=-1,
    early_ns=tuple(round(time_ms * 1e6) for time_ms in _CONNECTX_6_EARLY_MS),
    fewest_retries=1,
)


def rnr_wait_ps(timer_code: int) -> int:
    """Return how long a sender waits that was refused with a timer code of 0 to 31."""
    return round(RNR_TIMERS_MS[timer_code] * 1e9)


def nominal_timeout_ps(exponent: int) -> int:
    """Return 4.096 us * 2**exponent; NEVER_PS for exponent 0, which turns the timer off."""
    return NEVER_PS if exponent == 0 else UNIT_PS << exponent
