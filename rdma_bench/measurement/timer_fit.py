"""Parameters of a timer model that explain trials of a dead path: floor, multiplier, first wait, early stage.

For each timeout exponent T the times over the retry count R lie on a line: its slope is the regular wait I(T), and what
is left at R 0 is the start, S(T). From those:

    floor        the exponent whose wait is that of the least T tried, where it is a greater one
    multiplier   I(T) over the nominal timeout of T, or of the floor
    first wait   S over I, where that explains the trials: a plain adapter, of the standard's form
    early stage  S + I, where it does not: when the early retransmissions of each T are over

When each early retransmission goes out does not show in totals, only in a capture: those of a fitted model stand for
their sum. Trials with 2 retries and more tell the early stage best.

Source: the forms are those of fabrictune.foundation.retransmission.TimerModel.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.retransmission import MAX_EXPONENT, NEVER_PS, TimerModel, nominal_timeout_ps
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.rdma_bench.timers.profiles import FittedInterval, TimerProfile, TriedSetting
from fabrictune.rdma_bench.timers.trials import FOR_GOOD, NONE, RETRIES_EXCEEDED, TimerTrial

FEWEST_COUNTS = 2  # of retries at one exponent, or there is no slope
_GOOD_ENOUGH = 0.1  # a plain model that is no further off is preferred to one with an early stage
_LEAST_FIRST_WAIT = 0.1
_READING = 0.1  # of a step: how far measured times may be off without its becoming two

TimesNs = Mapping[int, float]  # by retry count


@dataclass(frozen=True, kw_only=True)
class ExponentFit:
    """Fit of the trials of one exponent."""

    exponent: int
    interval_ns: float
    start_ns: float  # at no retries

    @property
    def multiplier(self) -> float:
        """The regular wait, in nominal timeouts."""
        return self.interval_ns / _nominal_ns(self.exponent)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A model, how sure its numbers are, and how far off it is at worst."""

    timers: TimerModel
    intervals: tuple[FittedInterval, ...]
    tried: tuple[TriedSetting, ...]
    worst_error_fraction: float

    def profile(self, *, name: str, source: str, device: str, firmware: str = "") -> TimerProfile:
        """Return the profile of the adapter that was tried."""
        return TimerProfile(
            name=name,
            source=source,
            confidence="measured",
            device=device,
            firmware=firmware,
            caveat=f"at most {self.worst_error_fraction:.1%} off the trials it was fitted to",
            tried_exponents=tuple(sorted({one.timeout for one in self.tried})),
            tried=self.tried,
            timers=self.timers,
            intervals=self.intervals,
        )


def fit_timers(trials: Sequence[TimerTrial]) -> Fit:
    """Return the model; raises InputError where the trials do not determine one."""
    times = _median_times(trials)
    lines = [_line(exponent, by_retries) for exponent, by_retries in sorted(times.items()) if _has_slope(by_retries)]
    if not lines:
        next_step = "measure with more of them: --retries 2 --retries 5"
        found = f"no timeout with {FEWEST_COUNTS} retry counts that ended in status {RETRIES_EXCEEDED}"
        raise InputError(Mistake(where="trials", found=found, next_step=next_step))
    floor = _floor(lines)
    multipliers = [line.interval_ns / _nominal_ns(max(line.exponent, floor)) for line in lines]
    starts = [line.start_ns / line.interval_ns for line in lines]
    common = TimerModel(
        floor_exponent=floor, interval_multiplier=median(multipliers), endless_retries=_endless_retries(trials)
    )
    plain = replace(common, first_wait_multiplier=max(round(median(starts), 3), _LEAST_FIRST_WAIT))
    early = replace(common, extra_waits=-1, fewest_retries=1, early_ns=_early_stage(lines, floor))
    timers = plain if _worst_error(plain, times) <= max(_GOOD_ENOUGH, _worst_error(early, times)) else early
    return Fit(
        timers=timers,
        intervals=tuple(_intervals(timers, multipliers, starts, lines[0].exponent)),
        tried=tuple(_tried(trials)),
        worst_error_fraction=_worst_error(timers, times),
    )


def _detection_times(trials: Sequence[TimerTrial]) -> Mapping[tuple[int, int], Sequence[int]]:
    """Return by exponent and retry count when a path that stayed dead was noticed, in order."""
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for trial in trials:
        if trial.status == RETRIES_EXCEEDED and trial.cut_ns == FOR_GOOD:
            times[trial.spec.timeout_exponent, trial.spec.retries].append(trial.after_ns)
    return {setting: sorted(times[setting]) for setting in sorted(times)}


def _median_times(trials: Sequence[TimerTrial]) -> Mapping[int, TimesNs]:
    """Return the median of those times by exponent and by retry count."""
    result: dict[int, dict[int, float]] = defaultdict(dict)
    for (exponent, retries), times in _detection_times(trials).items():
        result[exponent][retries] = median(times)
    return result


def _tried(trials: Sequence[TimerTrial]) -> Iterator[TriedSetting]:
    for (exponent, retries), times in _detection_times(trials).items():
        yield TriedSetting(
            timeout=exponent, retries=retries, num_trials=len(times), least_ns=times[0], greatest_ns=times[-1]
        )


def _has_slope(by_retries: TimesNs) -> bool:
    return len(by_retries) >= FEWEST_COUNTS


def _line(exponent: int, by_retries: TimesNs) -> ExponentFit:
    """Return the line by least squares."""
    mean_retries = sum(by_retries) / len(by_retries)
    mean_ns = sum(by_retries.values()) / len(by_retries)
    rise = sum((retries - mean_retries) * time_ns for retries, time_ns in by_retries.items())
    interval_ns = rise / sum((retries - mean_retries) ** 2 for retries in by_retries)
    return ExponentFit(exponent=exponent, interval_ns=interval_ns, start_ns=mean_ns - interval_ns * mean_retries)


def _floor(lines: Sequence[ExponentFit]) -> int:
    """Return the exponent whose wait is that of the least one tried; 0 where that is itself."""
    ratio = lines[0].multiplier / min(line.multiplier for line in lines)
    floor = lines[0].exponent + round(math.log2(ratio))
    return floor if floor > lines[0].exponent else 0


def _early_stage(lines: Sequence[ExponentFit], floor: int) -> tuple[int, ...]:
    """Return times of early retransmissions that end when they must at each exponent.

    Steps are equal, and none is longer than its exponent's timeout. One that is no longer than the timeout of the
    exponent before would be taken there too. Then the adapter's own step is longer, and the next one, which cuts the
    first regular wait short, makes up for it: the step is a whole timeout, and what follows ends when it must.
    """
    ends: dict[int, list[float]] = defaultdict(list)
    interval_ns = {max(line.exponent, floor): line.interval_ns for line in lines}
    for line in lines:
        ends[max(line.exponent, floor)].append(line.start_ns + line.interval_ns)
    early, before_ns, next_ns = list[int](), 0.0, 0.0
    for exponent, several in sorted(ends.items()):
        last_ns, nominal_ns = (early[-1] if early else 0), _nominal_ns(exponent)
        gap_ns = median(several) - last_ns
        num_steps = max(math.ceil(gap_ns / nominal_ns - _READING), 1)
        step_ns = min(gap_ns / num_steps, nominal_ns)
        is_hidden = step_ns <= before_ns * (1 + _READING)
        if is_hidden:
            step_ns = nominal_ns
        early.extend(round(last_ns + step_ns * step) for step in range(1, num_steps + 1))
        next_ns = median(several) + interval_ns[exponent] if is_hidden else 0.0
        before_ns = nominal_ns
    return (*early, round(next_ns)) if next_ns else tuple(early)


def _intervals(
    timers: TimerModel, multipliers: Sequence[float], starts: Sequence[float], least_exponent: int
) -> Iterator[FittedInterval]:
    yield FittedInterval(parameter="interval_multiplier", low=min(multipliers), high=max(multipliers))
    if not timers.early_ns:
        yield FittedInterval(parameter="first_wait_multiplier", low=min(starts), high=max(starts))
    if not timers.floor_exponent:  # one at or below what was tried does not show
        yield FittedInterval(parameter="floor_exponent", low=0, high=least_exponent)


def _endless_retries(trials: Sequence[TimerTrial]) -> int | None:
    """Return the highest retry count if none of its trials ever ended, though those of others did."""
    dead = [trial for trial in trials if trial.cut_ns == FOR_GOOD and trial.spec.timeout_exponent]
    highest = max(trial.spec.retries for trial in dead)
    never = all(trial.status == NONE for trial in dead if trial.spec.retries == highest)
    return highest if never else None


def _worst_error(timers: TimerModel, times: Mapping[int, TimesNs]) -> float:
    """Return by what fraction the model is off at worst, of the settings that it speaks of."""
    return max(
        (
            abs(sum(timers.waits_ps(exponent, retries)) / PS_PER_NS / time_ns - 1)
            for exponent, by_retries in times.items()
            for retries, time_ns in by_retries.items()
            if retries >= timers.fewest_retries
        ),
        default=math.inf,
    )


def _nominal_ns(exponent: int) -> float:
    assert 0 < exponent <= MAX_EXPONENT
    nominal_ps = nominal_timeout_ps(exponent)
    assert nominal_ps != NEVER_PS
    return nominal_ps / PS_PER_NS
