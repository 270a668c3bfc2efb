"""What a step would gain if a request that hangs or is slow took as long as a healthy one.

How long a healthy one takes is measured where the evidence has requests like it, and modelled by a hardware profile
otherwise. A step waits for a request that hangs to its end, so that it gains all the time that the request is open
beyond that. What the evidence lacks is said.
"""

from dataclasses import dataclass, replace
from math import sqrt
from statistics import median

from fabrictune.foundation.traces import UNKNOWN as NOBODY
from fabrictune.foundation.traces import Operation
from fabrictune.foundation.wording import count, milliseconds
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.observability.hangs.alike import UsualTime, middle_of, open_us, request_of, timed_alike, usual_time
from fabrictune.observability.hangs.diagnosis import Cause, Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN, Request
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.operations import operation_of
from fabrictune.trainer_probe.prediction.program import ProgramRequest
from fabrictune.trainer_probe.prediction.request_costs import expected_s

MIN_STEPS = 3
ALL_OF_IT = "the step waits for all of this request"
LACKS_ALIKE = (
    "how long a healthy one takes: requests like it (NCCL Inspector, dumps with TORCH_NCCL_ENABLE_TIMING=1, spans), or "
    "--hardware NAME"
)
LACKS_OPEN = "for how long it is open (the line of the watchdog that timed it out)"
LACKS_REQUEST = "which request is held up"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Milliseconds: what is expected, and the ends of nine cases of ten."""

    low: float
    expected: float
    high: float

    def __str__(self) -> str:
        """The interval for people: `4.2 ms (3.9 to 4.8)`."""
        return f"{milliseconds(self.expected)} ms ({milliseconds(self.low)} to {milliseconds(self.high)})"


@dataclass(frozen=True, kw_only=True)
class Counterfactual:
    """How long the request takes while all is well, and what the step gains by that; None for what is not known."""

    request: Interval | None
    gain: Interval | None
    step: Interval | None  # a healthy one
    basis: str
    assumption: str
    missing: tuple[str, ...]

    def __str__(self) -> str:
        """The answer for people: `healthy: step -96.1 ms (-96.4 to -95.9): this request takes 4.2 ms, by ...`."""
        parts = [f"this request takes {self.request}, by {self.basis}"] if self.request else []
        parts += [f"a step takes {self.step}"] if self.step else []
        parts += [f"assumed: {self.assumption}"] if self.assumption else []
        parts += [f"not in the evidence: {', and '.join(self.missing)}"] if self.missing else []
        gain = self.gain
        head = (
            ""
            if gain is None
            else (f"step -{milliseconds(gain.expected)} ms (-{milliseconds(gain.high)} to -{milliseconds(gain.low)}): ")
        )
        return f"healthy: {head}{'; '.join(parts)}"


def find_counterfactual(diagnosis: Diagnosis, job: Job, hardware: HardwareProfile | None) -> Counterfactual:
    """Return what a step gains if the diagnosis's request is healthy."""
    step = None
    if len(job.steps_us) >= MIN_STEPS:
        low, high = middle_of(job.steps_us)
        step = _interval(low, median(job.steps_us), high)
    request = request_of(diagnosis, job)
    if request is None or diagnosis.group is None:
        return Counterfactual(request=None, gain=None, step=step, basis="", assumption="", missing=(LACKS_REQUEST,))
    if not diagnosis.cause.stands_still:
        return _of_slow(diagnosis, job, request, step)
    usual = usual_time(request, diagnosis.group, job)
    assumptions = [ALL_OF_IT]
    if usual is None and hardware is not None:
        usual, assumed = _modelled(request, diagnosis.group, job, hardware)
        assumptions = [assumed, ALL_OF_IT] if usual else assumptions
    elapsed_us = open_us(diagnosis, job)
    gain = None
    if usual is not None and elapsed_us is not None:
        gain = _interval(elapsed_us - usual.high_us, elapsed_us - usual.median_us, elapsed_us - usual.low_us)
    lacks = [LACKS_ALIKE] if usual is None else []
    lacks += [LACKS_OPEN] if elapsed_us is None else []
    return Counterfactual(
        request=None if usual is None else _interval(usual.low_us, usual.median_us, usual.high_us),
        gain=gain,
        step=step,
        basis=usual.basis if usual else "",
        assumption="; ".join(assumptions) if usual else "",
        missing=tuple(lacks),
    )


def _of_slow(diagnosis: Diagnosis, job: Job, request: Request, step: Interval | None) -> Counterfactual:
    """Return what a step gains for each request of a slow group, against other groups like it."""
    assert diagnosis.group is not None
    alike = [timed for timed in timed_alike(request, diagnosis.group, job) if timed.source == diagnosis.source]
    own = next(timed for timed in alike if timed.group == diagnosis.group)
    others = [timed for timed in alike if timed.group != diagnosis.group]
    times = [time for timed in others for time in timed.own_us]
    (low, high), usual = middle_of(times), median(times)
    slow = median(own.own_us if diagnosis.cause is Cause.SLOW else own.longest_us)
    return Counterfactual(
        request=_interval(low, usual, high),
        gain=_interval(max(0.0, slow - high), slow - usual, slow - low),
        step=step,
        basis=f"{len(times):,} requests like it of {count(len(others), 'other group')} ({diagnosis.source})",
        assumption=f"{ALL_OF_IT}, and has one of them; with more it gains as much for each",
        missing=(),
    )


def _modelled(request: Request, group: int, job: Job, hardware: HardwareProfile) -> tuple[UsualTime | None, str]:
    """Return how long a request takes by a profile's closed form, and what that assumes; None for what it lacks."""
    operation, members = operation_of(request.kind), job.groups[group].members
    ranks = tuple(job.processes[process].rank for process in members.values())
    if operation is None or request.num_bytes == UNKNOWN or UNKNOWN in ranks or len(ranks) != job.groups[group].size:
        return None, ""
    sender, receiver = (ranks[0], ranks[-1]) if operation in (Operation.SEND, Operation.RECEIVE) else (ranks[0], NOBODY)
    program = ProgramRequest(
        kind=operation, axis="", num_bytes=request.num_bytes, members=ranks, rank=sender, peer=receiver
    )
    expected_us = 1e6 * expected_s(program, hardware)
    squares = 0.0
    for section, name, key in _varied(hardware):
        part = getattr(hardware, section)
        value, share = getattr(part, name), hardware.uncertainty_of(key)
        varied = replace(hardware, **{section: replace(part, **{name: type(value)(value / (1 + share))})})
        squares += (1e6 * expected_s(program, varied) - expected_us) ** 2
    spread = sqrt(squares)
    basis = f"the closed form of profile {hardware.name}"
    usual = UsualTime(
        low_us=max(0.0, expected_us - spread), median_us=expected_us, high_us=expected_us + spread, basis=basis
    )
    return usual, f"ranks lie on hosts in order, {hardware.host.num_gpus} each"


def _varied(hardware: HardwareProfile) -> list[tuple[str, str, str]]:
    """Return section, field and key of the values of a profile that the time of a request depends on."""
    values, names = hardware.values(), hardware.field_names()
    keys = [key for key in values if key.split(".")[0] in ("nvlink", "network") and values[key]]
    return [(key.split(".")[0], names[key], key) for key in keys]


def _interval(low_us: float, expected_us: float, high_us: float) -> Interval:
    return Interval(low=low_us / 1e3, expected=expected_us / 1e3, high=high_us / 1e3)
