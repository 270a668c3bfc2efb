"""Report on the timers of a log of NCCL: failed completions with both ends, and settings that cannot work.

Error 12, IBV_WC_RETRY_EXC_ERR, means that nothing came back for as long as the timers allow. It names no culprit: a
dead peer, a link that is down or a switch that lost its route all look alike. So the findings name both ends, and what
to set if the cause was a flap. Completions that fail after the first (5, IBV_WC_WR_FLUSH_ERR) follow from it and are
only counted.

Of several hosts the first to give up decides; where the log leaves a setting open, every possible one counts
(`nccl_log_settings`).

Source: InfiniBand Architecture Specification 1.4, volume 1, 11.6.2 (completion status); rdma-core, ibv_poll_cq(3).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabrictune.collectives.nccl.completion_errors import CompletionError, completion_errors
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.foundation.checks import Check, CheckReport, join_reports, run_check, run_checks, skip_check
from fabrictune.foundation.finding_rules.rdma import (
    COMPLETION_ERROR,
    FLAP_TOO_LONG,
    NO_SUCH_TIMER,
    RETRIES_EXCEEDED,
    TIMER_SETTING,
    WATCHDOG_TOO_SHORT,
)
from fabrictune.foundation.records import Confidence, Finding, Severity
from fabrictune.foundation.retransmission import MAX_EXPONENT, MAX_RETRIES
from fabrictune.foundation.units import PS_PER_NS, format_duration
from fabrictune.rdma_bench.timers.nccl_log_settings import (
    RETRIES,
    TIMEOUT,
    TimerSettings,
    given_profile,
    is_usable,
    profile_of_devices,
    timer_settings,
)
from fabrictune.rdma_bench.timers.prediction import Prediction, predict_retransmission
from fabrictune.rdma_bench.timers.profiles import TimerProfile
from fabrictune.rdma_bench.timers.selection import choose_settings

TIMED_OUT, FLUSHED = 12, 5
MAX_EVIDENCE = 5
_ZERO_MEANS = {
    TIMEOUT: "0 turns the timer off, and a lost packet is never sent again",
    RETRIES: "with 0 the first lost packet may end the job",
}
_MEANINGS = {
    4: "IBV_WC_LOC_PROT_ERR: the adapter may not use the local memory, as with GPUDirect set up wrongly",
    9: "IBV_WC_REM_INV_REQ_ERR: the peer refused the request",
    10: "IBV_WC_REM_ACCESS_ERR: the peer has taken its memory back, as when its process has ended",
    11: "IBV_WC_REM_OP_ERR: the peer could not complete it",
    13: "IBV_WC_RNR_RETRY_EXC_ERR: the peer had no receive posted for too long",
}


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """Requirements of the job; infinite where none is given."""

    survive_ns: float = 0.0  # a flap of this length
    watchdog_ns: float = math.inf  # a wait for a collective is given up after this


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Findings in a log."""

    version: str  # of NCCL; "" where the log does not tell
    networks: tuple[str, ...]
    predictions: tuple[Prediction, ...]  # one for each setting that the log leaves possible, the first to give up first
    profile_is_assumed: bool  # nobody named it
    assumptions: tuple[str, ...]
    errors: tuple[CompletionError, ...]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]


def explain_log(
    log: NcclLog, profile: TimerProfile | None, requirements: Requirements, *, nccl: str = ""
) -> Explanation:
    """Return completion errors and settings of a log; `profile` says what an adapter makes of these.

    Without a profile the names of the log's devices choose one. `nccl` is a version in place of the log's. Raises
    InputError for a version or a retry count of which nothing is known.
    """
    errors = completion_errors(log)
    chosen, assumption = (profile, given_profile(profile)) if profile else profile_of_devices(log)
    fewest = chosen.timers.fewest_retries if chosen else 0
    settings = timer_settings(log, errors, fewest_retries=fewest, nccl=nccl)
    predictions = [predict_retransmission(spec, chosen) for spec in settings.specs] if chosen else []
    predictions.sort(key=lambda prediction: prediction.gives_up_ns)
    report = join_reports(
        run_checks(
            (RETRIES_EXCEEDED.id, COMPLETION_ERROR.id),
            f"{len(errors):,} completions with an error in the log",
            _error_findings(errors, predictions, requirements),
        ),
        run_check(
            TIMER_SETTING.id,
            f"{TIMEOUT} and {RETRIES}",
            (
                *_setting_findings(
                    log, TIMEOUT, settings.timeouts, MAX_EXPONENT, "five bits; a larger value waits indefinitely"
                ),
                *_setting_findings(
                    log, RETRIES, settings.counts, MAX_RETRIES, "three bits; a larger value is cut off or refused"
                ),
            ),
            expected="values that the adapters have, one on all hosts",
        ),
        _check_wishes(log, settings, predictions, requirements),
    )
    return Explanation(
        version=settings.version,
        networks=settings.networks,
        predictions=tuple(predictions),
        profile_is_assumed=profile is None,
        assumptions=(*settings.assumptions, *([assumption] if predictions else [])),
        errors=errors,
        findings=report.findings,
        checks=report.checks,
    )


def _check_wishes(
    log: NcclLog, settings: TimerSettings, predictions: Sequence[Prediction], requirements: Requirements
) -> CheckReport:
    """Return the checks of what the job needs; without a need, or a prediction, they did not run."""
    subject = f"{len(predictions)} timer settings that the log leaves possible"
    if not predictions:
        unknown = "no timers are known of the log's network"
        checks = (skip_check(rule, subject, unknown) for rule in (FLAP_TOO_LONG.id, WATCHDOG_TOO_SHORT.id))
        found = list(_no_timer(log, settings, requirements))
        return join_reports(*(run_check(NO_SUCH_TIMER.id, "networks of the log", found), *checks))
    findings = list(_wish_findings(predictions, requirements))
    needs = {
        FLAP_TOO_LONG.id: "" if requirements.survive_ns else "no flap to survive is given (--flap)",
        WATCHDOG_TOO_SHORT.id: "" if math.isfinite(requirements.watchdog_ns) else "no watchdog is given (--watchdog)",
    }
    return join_reports(
        *(
            skip_check(rule, subject, reason)
            if reason
            else run_check(rule, subject, [finding for finding in findings if finding.id == rule])
            for rule, reason in needs.items()
        )
    )


def _error_findings(
    errors: Sequence[CompletionError], predictions: Sequence[Prediction], requirements: Requirements
) -> Iterator[Finding]:
    groups = defaultdict[tuple[str, str, int], list[CompletionError]](list)
    for error in errors:
        if error.status != FLUSHED:
            groups[error.local, error.peer, error.status].append(error)
    num_flushed = sum(error.status == FLUSHED for error in errors)
    for (local, peer, status), group in groups.items():
        is_timeout = status == TIMED_OUT
        vendor = ", ".join(f"{number} ({number:#x})" for number in sorted({error.vendor_error for error in group}))
        meaning = "IBV_WC_RETRY_EXC_ERR: no answer" if is_timeout else _MEANINGS.get(status, "see ibv_poll_cq(3)")
        yield (RETRIES_EXCEEDED if is_timeout else COMPLETION_ERROR).finding(
            entity=f"{local} to {peer}",
            expected=f"an answer {_within(predictions)}" if is_timeout else "completions without error",
            actual=f"error {status}, {meaning}, {_times(len(group))}; vendor error {vendor}"
            + (f"; flushed after it: {num_flushed}" if num_flushed and is_timeout else ""),
            next_step=_next_step(predictions, requirements) if is_timeout else "",
            confidence=Confidence.MEASURED,
            evidence=tuple(error.where for error in group[:MAX_EVIDENCE]),
        )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _within(predictions: Sequence[Prediction]) -> str:
    """Return within which time an answer must come: a retransmission of each possible setting."""
    return f"within {_range(one.gives_up_ns for one in predictions)}" if predictions else "before the last retry"


def _next_step(predictions: Sequence[Prediction], requirements: Requirements) -> str:
    look = RETRIES_EXCEEDED.next_step
    if not predictions:
        return look
    if requirements.survive_ns == 0:
        longest = _range(one.longest_flap_ns for one in predictions)
        return f"{look}; timeout {_exponents(predictions)} with {_counts(predictions)} survives flaps up to {longest}"
    return f"{look}; {_what_to_set(predictions[0].profile, requirements)}"


def _what_to_set(profile: TimerProfile, requirements: Requirements) -> str:
    choice = choose_settings(profile, survive_ns=requirements.survive_ns, notice_ns=requirements.watchdog_ns)
    flap = f"for a flap of {_shown(requirements.survive_ns)}"
    if choice.satisfying:
        spec = choice.satisfying[0].spec
        return f"{flap} set {TIMEOUT}={spec.timeout_exponent} {RETRIES}={spec.retries} on every host"
    watchdog = _shown(requirements.watchdog_ns)
    return f"{flap} no settings give up before a watchdog of {watchdog}: raise that, or shorten the flap"


def _setting_findings(log: NcclLog, name: str, values: Mapping[str, str], most: int, why: str) -> Iterator[Finding]:
    for host, text in values.items():
        if not text:
            continue
        if not is_usable(text, range(most + 1)):
            yield _setting(log, name, host, text, f"0 to {most}: the field has {why}", f"set {name} to {most} at most")
        elif int(text) == 0:
            yield _setting(log, name, host, text, f"1 to {most}: {_ZERO_MEANS[name]}", f"unset {name}")
    if len(set(values.values())) > 1:
        differing = ", ".join(f"{text or 'the default'} on {host}" for host, text in sorted(values.items()))
        yield _setting(log, name, "the job", differing, "one value on all hosts", f"set {name} alike everywhere")


def _setting(log: NcclLog, name: str, entity: str, found: str, expected: str, next_step: str) -> Finding:
    return TIMER_SETTING.finding(
        severity=Severity.ERROR if entity != "the job" else Severity.WARNING,
        entity=f"{entity}: {name}",
        expected=expected,
        actual=found,
        next_step=next_step,
        confidence=Confidence.CONFIGURED,
        evidence=tuple(fact.where for fact in log.environment if fact.name == name)[:MAX_EVIDENCE],
    )


def _wish_findings(predictions: Sequence[Prediction], requirements: Requirements) -> Iterator[Finding]:
    """Yield findings for wishes that not every possible setting fulfils."""
    profile = predictions[0].profile
    entity = f"timeout {_exponents(predictions)}, {_counts(predictions)}, by {profile.name}"
    if not all(one.survives(requirements.survive_ns) for one in predictions):
        yield FLAP_TOO_LONG.finding(
            entity=entity,
            expected=f"to survive a flap of {_shown(requirements.survive_ns)}",
            actual=f"survives up to {_range(one.longest_flap_ns for one in predictions)}",
            next_step=_what_to_set(profile, requirements),
            confidence=Confidence.PREDICTED,
        )
    if any(one.gives_up_ns > requirements.watchdog_ns for one in predictions):
        yield WATCHDOG_TOO_SHORT.finding(
            entity=entity,
            expected=f"failure before the watchdog, which acts after {_shown(requirements.watchdog_ns)}",
            actual=f"queue pairs fail after {_range(one.gives_up_ns for one in predictions)}",
            confidence=Confidence.PREDICTED,
        )


def _no_timer(log: NcclLog, settings: TimerSettings, requirements: Requirements) -> Iterator[Finding]:
    """Yield the finding of a job of whose timers nothing is known; an error where something was asked of them."""
    was_asked = requirements != Requirements()
    devices = ", ".join(dict.fromkeys(fact.name for fact in log.devices))
    is_other_network = not settings.specs  # and otherwise devices without a profile
    yield NO_SUCH_TIMER.finding(
        severity=Severity.ERROR if was_asked else Severity.INFO,
        entity=f"network {', '.join(settings.networks) or 'of libfabric'}"
        if is_other_network
        else f"devices {devices}",
        expected="NET/IB, whose retransmission these settings control"
        if is_other_network
        else "devices with measured or documented timers",
        actual=f"no prediction: {TIMEOUT} and {RETRIES} have no effect on it"
        if is_other_network
        else "no prediction: no profile of these devices is known",
        next_step="look up the retransmission of that network's own documentation; nothing here predicts it"
        if is_other_network
        else "measure one with `fabrictune rdma timers measure`, or give one with --profile",
        confidence=Confidence.CONFIGURED,
        evidence=(*(fact.where for fact in log.networks), *(fact.where for fact in log.providers))[:MAX_EVIDENCE],
    )


def _exponents(predictions: Sequence[Prediction]) -> str:
    exponents = sorted({one.spec.timeout_exponent for one in predictions})
    return " or ".join(", ".join(map(str, exponents)).rsplit(", ", 1))


def _counts(predictions: Sequence[Prediction]) -> str:
    return f"{' or '.join(str(count) for count in sorted({one.spec.retries for one in predictions}))} retries"


def _range(times_ns: Iterable[float]) -> str:
    """Return the shortest and the longest time, or the one."""
    ordered = sorted(set(times_ns))
    return _shown(ordered[0]) if len(ordered) == 1 else f"{_shown(ordered[0])} to {_shown(ordered[-1])}"


def _shown(time_ns: float) -> str:
    return "never" if math.isinf(time_ns) else format_duration(time_ns * PS_PER_NS)
