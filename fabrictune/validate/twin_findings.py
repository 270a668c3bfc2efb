"""What the twin of a training has found: steps longer than predicted, and the links that were busy longer than planned.

An alarm for which no link is named is a warning where the threads of all ranks waited for processors at least that
much longer than in the calibration: by as much, at most, the machine's other work can have slowed a step.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.testbed import LINK_BUSY, STEP_LONGER
from fabrictune.foundation.findings import Confidence, Finding, Severity
from fabrictune.foundation.units import PS_PER_S, format_duration, format_fraction
from fabrictune.topology.fabric import Fabric
from fabrictune.validate.busy_links import BusyLink, busiest
from fabrictune.validate.step_twin import CALIBRATION_STEPS, ComparedStep, State, StepCalibration, StepTwin
from fabrictune.validate.testbed_training import WARM_UP_STEPS

OTHER_WORK = "run it again while the machine does nothing else"


def alarm_rule(twin: StepTwin) -> str:
    """Return in words when the twin raises its alarm."""
    return f"the median of {twin.window} steps in a row above the interval"


def check_twin(twin: StepTwin) -> CheckReport:
    """Return what is found of the steps and links so far."""
    num_compared = sum(step.is_predicted for step in twin.steps)
    subject = f"{num_compared:,} of {len(twin.steps):,} steps compared"
    if num_compared < twin.window:
        before = WARM_UP_STEPS + CALIBRATION_STEPS
        reason = (
            f"it takes {before + twin.window} steps: {before} before the first prediction, {twin.window} from there"
        )
        return skip_check(STEP_LONGER.id, subject, reason) + _check_links(twin)
    expected = f"not {alarm_rule(twin)}"
    return run_check(STEP_LONGER.id, subject, _step_findings(twin), expected=expected) + _check_links(twin)


def link_evidence(fabric: Fabric, link: BusyLink) -> str:
    """Return how busy a link was, and whether it sent what was planned."""
    return (
        f"{fabric.link_label(link.port)}: busy {link.factor:.1f} times as long as its planned bytes take, "
        f"{format_fraction(link.sent_fraction)} of which it sent"
    )


def step_lines(twin: StepTwin) -> list[str]:
    """Return what is to be said of the last step: its time beside its prediction, and alarms that begin or end."""
    *before, last = twin.steps[-2:]
    line = f"step {last.event.step}: {show_s(last.event.seconds)}, {last.state.value}"
    if last.is_predicted:
        line += f", predicted {show_s(last.predicted_s)} within {show_s(last.half_width_s)}"
    if math.isfinite(last.sent_fraction):
        line += f"; bytes {format_fraction(last.sent_fraction)} of planned"
    lines = [line]
    if last.is_alarm != any(step.is_alarm for step in before):
        lines.append(f"alarm: {alarm_rule(twin)}" if last.is_alarm else "the alarm has ended")
    known = {link.port for step in before for link in step.links}
    new = [link for link in last.links if link.port not in known]
    return [*lines, *(f"alarm: {link_evidence(twin.fabric, link)}" for link in new if twin.fabric)]


def show_s(seconds: float) -> str:
    """Return a time of seconds with the unit that suits it."""
    return format_duration(seconds * PS_PER_S)


def _check_links(twin: StepTwin) -> CheckReport:
    fabric = twin.fabric
    if fabric is None:
        return skip_check(LINK_BUSY.id, "links", "ranks share this machine's loopback, which has none")
    links = busiest([link for step in twin.steps for link in step.links])
    findings = (
        LINK_BUSY.finding(
            entity=fabric.link_label(port),
            actual=f"busy {show_s(link.busy_s)} of a step, {link.factor:.1f} times as long",
            expected=f"{show_s(link.planned_s)} for its planned bytes",
            confidence=Confidence.MEASURED,
            evidence=(link_evidence(fabric, link),),
        )
        for port, link in links.items()
    )
    return run_check(LINK_BUSY.id, f"{fabric.num_ports:,} link directions", findings)


def _step_findings(twin: StepTwin) -> Iterator[Finding]:
    for steps in _alarms(twin.steps, twin.window):
        assert twin.calibration
        yield _step_finding(twin.fabric, steps, twin.calibration)


def _step_finding(fabric: Fabric | None, steps: Sequence[ComparedStep], calibration: StepCalibration) -> Finding:
    links = busiest([link for step in steps for link in step.links])
    longer, last = [step.event for step in steps if step.state == State.LONGER], steps[-1]
    measured_s = median(event.seconds for event in longer)
    waited_s = median(event.waited_s for event in longer) - calibration.waited_s
    is_other_work = not links and waited_s >= measured_s - last.predicted_s
    where = ", ".join(fabric.link_label(port) for port in links) if fabric and links else "no link is named"
    return STEP_LONGER.finding(
        entity=f"steps {steps[0].event.step} to {last.event.step}",
        actual=f"{show_s(measured_s)} a step: {where}",
        expected=f"{show_s(last.predicted_s)} within {show_s(last.half_width_s)}",
        confidence=Confidence.MEASURED,
        severity=Severity.WARNING if is_other_work else Severity.ERROR,
        evidence=(
            f"calibrated on steps {calibration.first_step} to {calibration.last_step} of this run",
            f"ranks' threads waited for processors {show_s(abs(waited_s))} a step "
            f"{'more' if waited_s >= 0 else 'less'} than in the calibration",
            *(link_evidence(fabric, link) for link in links.values() if fabric),
        ),
        next_step=OTHER_WORK if is_other_work else "",
    )


def _alarms(steps: Sequence[ComparedStep], window: int) -> Iterator[Sequence[ComparedStep]]:
    """Yield the steps of each alarm: those whose median raised it, to the last that kept it."""
    first = None
    for place, step in enumerate(steps):
        if step.is_alarm and first is None:
            first = place - window + 1
        is_over = not step.is_alarm or place == len(steps) - 1
        if is_over and first is not None:
            yield steps[first : place + step.is_alarm]
            first = None
