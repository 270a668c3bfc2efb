"""Trials of retransmission timers, one setting after another: detection time of a dead path, and stall after a flap.

Each trial has queue pairs of its own. The path dies either by silence, the peer's queue pair dropping what comes, which
needs no permission and cannot be undone; or by commands that the receiver's host has been given, which a flap needs.

What was measured until something broke, or a user pressed Ctrl-C, is kept, with the reason why there is no more.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product

from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.retransmission import MAX_RETRIES, NEVER_PS, nominal_timeout_ps
from fabrictune.foundation.time_limits import scaled
from fabrictune.foundation.units import NS_PER_S, PS_PER_S
from fabrictune.rdma_bench.measurement.pair import WorkerPair
from fabrictune.rdma_bench.measurement.stop_reason import reason_of
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.trials import FOR_GOOD, NONE, TimerTrial
from fabrictune.rdma_bench.verbs.counters import by_meaning, count_changes
from fabrictune.rdma_bench.verbs.endpoint import ConnectionSpec
from fabrictune.rdma_bench.verbs.session import LONGEST_CUT_SILENCE_S
from fabrictune.rdma_bench.verbs.trials import Traffic, TrialSpec

MAX_TRIALS = 10_000
_SLOWEST_MULTIPLIER, _HIGHEST_FLOOR = 4, 16  # of any adapter that is known; beyond them a trial ends without an error
_SLACK_S = 2.0
_ANSWER_S = 30.0
_FLOWING_S = 0.2  # of continuous traffic before its path is cut


@dataclass(frozen=True, kw_only=True)
class TimerPlan:
    """Settings to try, and the way the path dies."""

    exponents: tuple[int, ...]
    retries: tuple[int, ...]
    num_repetitions: int = 1
    traffic: Traffic = "idle"
    cuts_ns: tuple[int, ...] = (FOR_GOOD,)  # how long the path is dead
    by_command: bool = False
    limit_s: float | None = None  # of a trial; None: beyond what any known adapter takes

    def __post_init__(self) -> None:
        if self.num_trials > MAX_TRIALS:
            raise InputError(Mistake(where="trials", found=f"{self.num_trials}", allowed=f"at most {MAX_TRIALS}"))
        if any(cut_ns != FOR_GOOD for cut_ns in self.cuts_ns) and not self.by_command:
            next_step = "say how: --cut-command and --heal-command"
            raise InputError(Mistake(where="flap", found="silence cannot end: it takes commands", next_step=next_step))

    @property
    def num_trials(self) -> int:
        """Number of trials."""
        return len(self.exponents) * len(self.retries) * len(self.cuts_ns) * self.num_repetitions

    def settings(self) -> Iterator[tuple[ConnectionSpec, int]]:
        """Yield the setting and the flap of each trial, the repetitions of one far from each other."""
        for _ in range(self.num_repetitions):
            for exponent, retries, cut_ns in product(self.exponents, self.retries, self.cuts_ns):
                yield ConnectionSpec(timeout_exponent=exponent, retries=retries), cut_ns

    def longest_s(self, spec: ConnectionSpec) -> float:
        """Return after how long a trial ends whatever comes."""
        if self.limit_s is not None:
            return self.limit_s
        nominal_ps = nominal_timeout_ps(spec.timeout_exponent and max(spec.timeout_exponent, _HIGHEST_FLOOR))
        nominal_s = 0 if nominal_ps == NEVER_PS else nominal_ps / PS_PER_S
        return _SLOWEST_MULTIPLIER * nominal_s * (min(spec.retries, MAX_RETRIES - 1) + 1) + scaled(_SLACK_S)


@dataclass(frozen=True, kw_only=True)
class MeasuredTimers:
    """All trials, in order."""

    trials: tuple[TimerTrial, ...]
    device: str
    uncertain: tuple[str, ...] = ()  # counters that wrapped, stood still or were reset
    stopped: str = ""  # why there are no more; empty: there are all


def measure_timers(pair: WorkerPair, plan: TimerPlan, progress: Progress | None = None) -> MeasuredTimers:
    """Run all trials; raises what ended the first one, and returns what there is if a later one fails or is stopped."""
    trials = list[TimerTrial]()
    uncertain = dict[str, None]()
    device, stopped = "", ""
    try:
        for spec, cut_ns in plan.settings():
            with pair.connected(spec) as ends:
                device = f"{ends['sender']['device']} port {ends['sender']['port']}"
                trials.append(_run_trial(pair, plan, spec, cut_ns, uncertain))
            if progress:
                progress(len(trials) / plan.num_trials)
    except (FabrictuneError, KeyboardInterrupt) as error:
        if not trials:
            raise
        stopped = reason_of(error)
    return MeasuredTimers(trials=tuple(trials), device=device, uncertain=tuple(uncertain), stopped=stopped)


def _run_trial(
    pair: WorkerPair, plan: TimerPlan, spec: ConnectionSpec, cut_ns: int, uncertain: dict[str, None]
) -> TimerTrial:
    cut_s = max(cut_ns, 0) / NS_PER_S
    longest_s = plan.longest_s(spec) + cut_s
    stall_s = max(TrialSpec.stall_s, cut_s)  # a shorter one is the machine's
    trial_spec = asdict(TrialSpec(traffic=plan.traffic, limit_s=longest_s, stall_s=stall_s))
    before = pair.sender.ask("counters")
    if plan.traffic == "continuous":
        pair.sender.begin("trial", **trial_spec)
        time.sleep(scaled(_FLOWING_S))
        _cut(pair, plan, longest_s)
    else:  # what is posted before the path is dead would come through
        _cut(pair, plan, longest_s)
        pair.sender.begin("trial", **trial_spec)
    if cut_ns != FOR_GOOD:
        pair.receiver.ask("heal", after_s=cut_s, timeout_s=cut_s + _ANSWER_S)
    result = pair.sender.finish(timeout_s=longest_s + _ANSWER_S)
    changes = count_changes(before, pair.sender.ask("counters"))
    uncertain.update({f"{change.name}: {change.certainty}": None for change in changes if change.certainty != "exact"})
    return TimerTrial(
        spec=RetransmissionSpec(timeout_exponent=spec.timeout_exponent, retries=spec.retries),
        cut_ns=cut_ns,
        status=NONE if result["status"] is None else result["status"],
        after_ns=result["after_ns"],
        num_retransmissions=by_meaning(changes).get("timeouts", NONE),
    )


def _cut(pair: WorkerPair, plan: TimerPlan, longest_s: float) -> None:
    if plan.by_command:
        pair.receiver.ask("cut", silence_s=min(longest_s + _ANSWER_S, LONGEST_CUT_SILENCE_S))
    else:
        pair.receiver.ask("stop_answering")
