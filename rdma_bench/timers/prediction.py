"""Time to a retry-exceeded error, and resumption of traffic after a link flap.

An application sets two numbers: a timeout exponent T (NCCL_IB_TIMEOUT, 20) and a retry count R (NCCL_IB_RETRY_CNT, 7).
An adapter makes a list of waits of them. A dead path ends the queue pair when the last wait has passed; a flap is
survived if the path is back when the last retransmission goes out, one wait earlier. What is sent again meanwhile is
lost, so traffic resumes not with the link but with the first retransmission after it.

Left out: a sender that goes on sending new packets shows the receiver the gap as soon as one gets through, and so
resumes within a round trip; what is predicted is a sender with nothing more to send.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import Any, Literal

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.retransmission import MAX_EXPONENT, MAX_RETRIES, NEVER_PS, TimerModel
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.rdma_bench.timers.profiles import FittedInterval, TimerProfile

PredictionBasis = Literal["documented", "measured", "extrapolated"]


@dataclass(frozen=True, kw_only=True)
class RetransmissionSpec:
    """Retransmission settings of an application's queue pairs; the defaults are NCCL's since 2.23.4."""

    timeout_exponent: int = 20  # 0: wait without limit
    retries: int = 7

    def __post_init__(self) -> None:
        ranges = (("timeout_exponent", self.timeout_exponent, MAX_EXPONENT), ("retries", self.retries, MAX_RETRIES))
        mistakes = [
            Mistake(where=name, found=str(value), allowed=f"0 to {most}")
            for name, value, most in ranges
            if not 0 <= value <= most
        ]
        if mistakes:
            raise InputError(*mistakes)


@dataclass(frozen=True)
class Prediction:
    """Behaviour of an adapter with these settings when nothing comes back; times from the first sending."""

    spec: RetransmissionSpec
    profile: TimerProfile

    @property
    def gives_up_ns(self) -> float:
        """When a dead path ends the queue pair with IBV_WC_RETRY_EXC_ERR; infinite where nothing does."""
        return math.inf if NEVER_PS in self._waits_ps else sum(self._waits_ps) / PS_PER_NS

    @property
    def longest_flap_ns(self) -> float:
        """The longest time without a path after which traffic resumes; 0 where nothing is ever sent again."""
        return math.inf if self._is_endless else float(max(self.retransmissions_ns, default=0))

    @property
    def interval_ns(self) -> float:
        """Time between two regular retransmissions."""
        interval_ps = self.profile.timers.interval_ps(self.spec.timeout_exponent)
        return math.inf if interval_ps == NEVER_PS else interval_ps / PS_PER_NS

    @cached_property
    def retransmissions_ns(self) -> tuple[float, ...]:
        """When the retransmissions go out; where they do not end, the first of them."""
        return tuple(time_ps / PS_PER_NS for time_ps in accumulate(self._waits_ps[:-1]))

    @property
    def confidence(self) -> PredictionBasis:
        """Confidence in it: a setting that was not tried is arithmetic."""
        if self.profile.confidence == "measured" and not self._was_tried:
            return "extrapolated"
        return self.profile.confidence

    @property
    def gives_up_interval_ns(self) -> tuple[float, float] | None:
        """Between which times a dead path ends the queue pair; None where nothing tells.

        The shortest and the longest trial of a setting that was tried; elsewhere the times by the least and by the
        greatest values that the trials allow for the fitted parameters.
        """
        spec, profile = self.spec, self.profile
        if tried := profile.tried_setting(spec.timeout_exponent, spec.retries):
            return tried.least_ns, tried.greatest_ns
        if not profile.intervals:
            return None
        low, high = (
            replace(self, profile=replace(profile, timers=_with_parameters(profile, end), intervals=()))
            for end in (attrgetter("low"), attrgetter("high"))
        )
        return low.gives_up_ns, high.gives_up_ns

    @property
    def basis(self) -> str:
        """What `gives_up_ns` rests on and how sure it is, for people."""
        if self.profile.confidence == "documented":
            return "documented, no trials"
        if not self._was_tried:
            return f"extrapolated, {'fitted' if self.gives_up_interval_ns else 'no'} interval"
        tried = self.profile.tried_setting(self.spec.timeout_exponent, self.spec.retries)
        return f"measured, {tried.num_trials} trials" if tried else "measured, range not kept"

    @property
    def _was_tried(self) -> bool:
        return self.profile.was_tried(self.spec.timeout_exponent, self.spec.retries)

    def survives(self, flap_ns: float) -> bool:
        """Return whether traffic resumes after a path has been down for `flap_ns` from the first sending on."""
        return flap_ns <= self.longest_flap_ns

    def resumes_ns(self, flap_ns: float) -> float:
        """Return when traffic resumes after such a flap; infinite if it does not."""
        if not self.survives(flap_ns):
            return math.inf
        last_ns = max(self.retransmissions_ns, default=0.0)
        if flap_ns > last_ns:  # of the ones listed: they go on without end
            return last_ns + math.ceil((flap_ns - last_ns) / self.interval_ns) * self.interval_ns
        return next(time_ns for time_ns in (0.0, *self.retransmissions_ns) if time_ns >= flap_ns)

    @cached_property
    def _waits_ps(self) -> tuple[int, ...]:
        return self.profile.timers.waits_ps(self.spec.timeout_exponent, self.spec.retries)

    @property
    def _is_endless(self) -> bool:
        return self.spec.timeout_exponent != 0 and self.spec.retries == self.profile.timers.endless_retries


def _with_parameters(profile: TimerProfile, end: Callable[[FittedInterval], float]) -> TimerModel:
    """Return a profile's model with each fitted parameter at one end of its interval."""
    whole = ("floor_exponent", "extra_waits")
    values: dict[str, Any] = {
        one.parameter: round(end(one)) if one.parameter in whole else end(one) for one in profile.intervals
    }
    return replace(profile.timers, **values)


def predict_retransmission(spec: RetransmissionSpec, profile: TimerProfile) -> Prediction:
    """Return what the adapter does with these settings; raises InputError where the profile says nothing of them."""
    fewest = profile.timers.fewest_retries
    if spec.retries < fewest:
        allowed = f"{fewest} or more, for {profile.name}"
        raise InputError(Mistake(where="retries", found=str(spec.retries), allowed=allowed))
    return Prediction(spec, profile)
