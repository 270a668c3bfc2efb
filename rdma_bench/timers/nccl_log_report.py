"""Report on the timers of a log of NCCL: failed completions with both ends, and settings that cannot work.

Error 12, IBV_WC_RETRY_EXC_ERR, means that nothing came back for as long as the timers allow. It names no culprit: a
dead peer, a link that is down or a switch that lost its route all look alike. So the findings name both ends, and what
to set if the cause was a flap. Completions that fail after the first (5, IBV_WC_WR_FLUSH_ERR) follow from it and are
only counted.

A host that logs its environment without a setting has NCCL's default; of several hosts the first to give up decides.

Source: InfiniBand Architecture Specification 1.4, volume 1, 11.6.2 (completion status); rdma-core, ibv_poll_cq(3).
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fabrictune.collectives.nccl.completion_errors import CompletionError, completion_errors
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.foundation.records import Confidence, Finding, Severity
from fabrictune.foundation.retransmission import MAX_EXPONENT, MAX_RETRIES
from fabrictune.foundation.units import PS_PER_NS, format_duration
from fabrictune.rdma_bench.timers.nccl_defaults import NEWEST, nccl_default
from fabrictune.rdma_bench.timers.prediction import Prediction, RetransmissionSpec, predict_retransmission
from fabrictune.rdma_bench.timers.profiles import TimerProfile
from fabrictune.rdma_bench.timers.selection import choose_settings

TIMEOUT, RETRIES = "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"
RETRIES_EXCEEDED, FLUSHED = 12, 5
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

    version: str  # of NCCL; the newest known where the log does not tell
    prediction: Prediction  # with the settings of the log
    errors: tuple[CompletionError, ...]
    findings: tuple[Finding, ...] = field(default=())


def explain_log(log: NcclLog, profile: TimerProfile, requirements: Requirements) -> Explanation:
    """Return completion errors and settings of a log; `profile` says what an adapter makes of these."""
    version = log.versions[0].version if log.versions else NEWEST
    default = nccl_default(version, where="the log's version")
    timeouts = _values(log, TIMEOUT, default.timeout_exponent)
    counts = _values(log, RETRIES, default.retries)
    spec = RetransmissionSpec(
        timeout_exponent=_least_usable(timeouts, range(MAX_EXPONENT + 1), default.timeout_exponent),
        retries=_least_usable(counts, range(profile.timers.fewest_retries, MAX_RETRIES + 1), default.retries),
    )
    prediction, errors = predict_retransmission(spec, profile), completion_errors(log)
    findings = (
        *_error_findings(errors, prediction, requirements),
        *_setting_findings(log, TIMEOUT, timeouts, MAX_EXPONENT, "five bits; a larger value waits indefinitely"),
        *_setting_findings(log, RETRIES, counts, MAX_RETRIES, "three bits; a larger value is cut off or refused"),
        *_wish_findings(prediction, requirements),
    )
    return Explanation(version=version, prediction=prediction, errors=errors, findings=findings)


def _values(log: NcclLog, name: str, default: int) -> dict[str, str]:
    """Return a setting on every host that logs its environment."""
    hosts = sorted({fact.host for fact in log.environment})
    return {**dict.fromkeys(hosts, str(default)), **log.settings(name)}


def _least_usable(values: dict[str, str], allowed: range, default: int) -> int:
    """Return the least value that means something."""
    return min((int(text) for text in values.values() if _is_usable(text, allowed)), default=default)


def _is_usable(text: str, allowed: range) -> bool:
    return text.isdecimal() and len(text) < 4 and int(text) in allowed


def _error_findings(
    errors: Sequence[CompletionError], prediction: Prediction, requirements: Requirements
) -> Iterator[Finding]:
    groups = defaultdict[tuple[str, str, int], list[CompletionError]](list)
    for error in errors:
        if error.status != FLUSHED:
            groups[error.local, error.peer, error.status].append(error)
    num_flushed = sum(error.status == FLUSHED for error in errors)
    for (local, peer, status), group in groups.items():
        is_timeout = status == RETRIES_EXCEEDED
        vendor = ", ".join(f"{number} ({number:#x})" for number in sorted({error.vendor_error for error in group}))
        meaning = "IBV_WC_RETRY_EXC_ERR: no answer" if is_timeout else _MEANINGS.get(status, "see ibv_poll_cq(3)")
        yield Finding(
            id="nccl.retries-exceeded" if is_timeout else "nccl.completion-error",
            severity=Severity.ERROR,
            entity=f"{local} to {peer}",
            expected=f"an answer within {_shown(prediction.gives_up_ns)}"
            if is_timeout
            else "completions without error",
            actual=f"error {status}, {meaning}, {_times(len(group))}; vendor error {vendor}"
            + (f"; flushed after it: {num_flushed}" if num_flushed and is_timeout else ""),
            next_step=_next_step(prediction, requirements)
            if is_timeout
            else "look at the peer's log for what came first",
            confidence=Confidence.MEASURED,
            evidence=tuple(error.where for error in group[:MAX_EVIDENCE]),
        )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _next_step(prediction: Prediction, requirements: Requirements) -> str:
    spec = prediction.spec
    longest = _shown(prediction.longest_flap_ns)
    look = "see whether the peer's process lives and whether link_downed or symbol errors rose on either port"
    if requirements.survive_ns == 0:
        return f"{look}; timeout {spec.timeout_exponent} with {spec.retries} retries survives flaps up to {longest}"
    return f"{look}; {_what_to_set(prediction, requirements)}"


def _what_to_set(prediction: Prediction, requirements: Requirements) -> str:
    choice = choose_settings(prediction.profile, survive_ns=requirements.survive_ns, notice_ns=requirements.watchdog_ns)
    flap = f"for a flap of {_shown(requirements.survive_ns)}"
    if choice.satisfying:
        spec = choice.satisfying[0].spec
        return f"{flap} set {TIMEOUT}={spec.timeout_exponent} {RETRIES}={spec.retries} on every host"
    watchdog = _shown(requirements.watchdog_ns)
    return f"{flap} no settings give up before a watchdog of {watchdog}: raise that, or shorten the flap"


def _setting_findings(log: NcclLog, name: str, values: dict[str, str], most: int, why: str) -> Iterator[Finding]:
    for host, text in values.items():
        if not _is_usable(text, range(most + 1)):
            yield _setting(log, name, host, text, f"0 to {most}: the field has {why}", f"set {name} to {most} at most")
        elif int(text) == 0:
            yield _setting(log, name, host, text, f"1 to {most}: {_ZERO_MEANS[name]}", f"unset {name}")
    if len(set(values.values())) > 1:
        differing = ", ".join(f"{text} on {host}" for host, text in sorted(values.items()))
        yield _setting(log, name, "the job", differing, "one value on all hosts", f"set {name} alike everywhere")


def _setting(log: NcclLog, name: str, entity: str, found: str, expected: str, next_step: str) -> Finding:
    return Finding(
        id="nccl.timer-setting",
        severity=Severity.ERROR if entity != "the job" else Severity.WARNING,
        entity=f"{entity}: {name}",
        expected=expected,
        actual=found,
        next_step=next_step,
        confidence=Confidence.CONFIGURED,
        evidence=tuple(fact.where for fact in log.environment if fact.name == name)[:MAX_EVIDENCE],
    )


def _wish_findings(prediction: Prediction, requirements: Requirements) -> Iterator[Finding]:
    spec, name = prediction.spec, prediction.profile.name
    entity = f"timeout {spec.timeout_exponent}, {spec.retries} retries, by {name}"
    if not prediction.survives(requirements.survive_ns):
        yield Finding(
            id="nccl.flap-too-long",
            severity=Severity.ERROR,
            entity=entity,
            expected=f"to survive a flap of {_shown(requirements.survive_ns)}",
            actual=f"survives up to {_shown(prediction.longest_flap_ns)}",
            next_step=_what_to_set(prediction, requirements),
            confidence=Confidence.PREDICTED,
        )
    if prediction.gives_up_ns > requirements.watchdog_ns:
        yield Finding(
            id="nccl.watchdog-too-short",
            severity=Severity.WARNING,
            entity=entity,
            expected=f"to give up before the watchdog, after {_shown(requirements.watchdog_ns)}",
            actual=_shown(prediction.gives_up_ns),
            next_step="raise the watchdog's timeout above that, or the error that names the link is never written",
            confidence=Confidence.PREDICTED,
        )


def _shown(time_ns: float) -> str:
    return "never" if math.isinf(time_ns) else format_duration(time_ns * PS_PER_NS)
