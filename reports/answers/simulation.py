"""Answers of simulated runs and of their collisions: how long the job takes, and the bounds that it met and broke."""

from collections.abc import Iterator, Sequence

import numpy as np

from fabrictune.foundation.checks import Check, Result
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.metrics.transfers import estimator
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_fraction
from fabrictune.foundation.wording import count
from fabrictune.reports.answers.answer import Answer, Bound, spread
from fabrictune.reports.blocks import percent, plural
from fabrictune.reports.comparison import COMPARISON
from fabrictune.reports.link_load import offered_load
from fabrictune.reports.load_scale import ROUNDING
from fabrictune.reports.record_view import REPLAYED_STEPS, THROUGHPUT, Run
from fabrictune.reports.selection import select

EXPECTATION = "expect."  # begins the rule of a bound that the scenario sets
NO_EXPECTATION = "expect.*"  # the rule of the check of a scenario without any
SEEDS = select(
    "seeds",
    *(f"{name}{end}" for name in ("overload_probability", "throughput_fraction") for end in ("", "_low", "_high")),
)
FINISHES = select("transfers", "finish_ps")  # of tables with a million rows, no more than is needed
LEVELS = ("step", "overlapped step")  # rows of a comparison that are whole steps
QUARTILES = (0.25, 0.5, 0.75)
MAX_BOUNDS = 40  # shown, broken ones first


def run_answer(run: Run) -> Answer | None:
    """Return how long the job takes, and each expectation."""
    if (failure := run.record.run.get("failure")) is not None:
        return Answer(sentence=f"The run failed: {failure}")
    transfers = run.rows(FINISHES)
    if transfers is None:
        return None
    bounds = tuple(_bounds(run))
    sentences = (*_times(run, transfers), _count(bounds))
    return Answer(sentence=" ".join(filter(None, sentences)), bounds=bounds[:MAX_BOUNDS])


def collisions_answer(run: Run) -> Answer | None:
    """Return how many links the hash oversubscribes, and what the flows get."""
    load = offered_load(run)
    if load is None:
        return None
    loaded, over = load.busiest_ports(), int((load.load_P > 1 + ROUNDING).sum())
    if not len(loaded):
        return Answer(sentence="No queue pair loads any link.")
    worst = int(loaded[0])
    where = f"{load.fabric.link_label(worst)} at {percent(float(load.load_P[worst]))} of its rate"
    sentences = [
        f"{over:,} of {count(len(loaded), 'loaded link direction')} oversubscribed, the worst {where}."
        if over
        else f"No oversubscribed links: {count(len(loaded), 'loaded link direction')}, the busiest {where}.",
        *_flows(run),
        *_over_seeds(run),
    ]
    return Answer(sentence=" ".join(sentences), bounds=tuple(_bounds(run))[:MAX_BOUNDS])


def comparison_answer(run: Run) -> Answer | None:
    """Return how near simulated steps are to measured ones."""
    rows = run.rows(COMPARISON)
    if rows is None:
        return run_answer(run)
    whole = np.isin(rows["operation"].astype(str), LEVELS)
    ratios, what = (rows["ratio"][whole], "step") if whole.any() else (rows["ratio"], "collective")
    low, middle, high = percentiles(ratios, QUARTILES).tolist()
    return Answer(
        sentence=f"A simulated {what} takes {middle:.2f} times the measured time (middle half of "
        f"{plural(len(ratios), what)}: {low:.2f} to {high:.2f})."
    )


def _times(run: Run, transfers: Columns) -> Iterator[str]:
    """Yield the job's time with its interval, and the step's of a replayed trace."""
    unfinished = int((transfers["finish_ps"] < 0).sum())
    if unfinished:
        yield f"The job does not end: {unfinished:,} of {plural(len(transfers['finish_ps']), 'transfer')} are left."
    else:
        metric = METRICS["makespan"]
        value, ends = metric.measure(run.record), None
        if by := estimator(run.record):
            ends = metric.interval(run.record)
        if value == value:
            low, high = ends or (value, value)
            yield f"The job takes {spread((value, low, high), metric.show)}{f', estimated by {by}' if by else ''}."
    steps = run.rows(REPLAYED_STEPS)
    if steps is not None:
        step_ps, exposed_ps = (float(np.median(steps[name])) for name in ("duration_ps", "exposed_ps"))
        share = format_fraction(exposed_ps / step_ps) if step_ps else "0 %"
        yield f"A step takes {format_metric(step_ps, 'ps')}, of which ranks wait {share} for communication."


def _flows(run: Run) -> Iterator[str]:
    if (throughput := run.rows(THROUGHPUT)) is not None:
        shares = throughput["throughput_fraction"]
        mean, least = percent(float(shares.mean())), percent(float(shares.min()))
        yield f"Queue pairs get {mean} of what they offer, the slowest {least}."


def _over_seeds(run: Run) -> Iterator[str]:
    if (seeds := run.rows(SEEDS)) is not None:
        shown = [
            spread((float(seeds[f"{name}{end}"][0]) for end in ("", "_low", "_high")), format_fraction)
            for name in ("overload_probability", "throughput_fraction")
        ]
        yield f"Over unknown hash seeds: P(overload) {shown[0]}, flow throughput {shown[1]}."


def _bounds(run: Run) -> Iterator[Bound]:
    """Yield the scenario's expectations, broken ones first."""
    checks = [
        check
        for check in run.record.checks or ()
        if check.rule.startswith(EXPECTATION) and check.rule != NO_EXPECTATION
    ]
    order = (Result.FOUND, Result.NOT_RUN, Result.PASSED)
    for check in sorted(checks, key=lambda check: order.index(check.result)):
        is_met = {Result.FOUND: False, Result.NOT_RUN: None, Result.PASSED: True}[check.result]
        expected = f", expected {check.expected}" if check.expected else ""
        yield Bound(text=f"{check.subject}: {_actual(run, check)}{expected}", is_met=is_met)


def _actual(run: Run, check: Check) -> str:
    if check.result != Result.FOUND:
        return check.actual or check.reason
    broken = (finding.actual for finding in run.record.findings if finding.id == check.rule)
    return next(broken, plural(check.num_found, "finding"))


def _count(bounds: Sequence[Bound]) -> str:
    if not bounds:
        return ""
    met, broken = (sum(bound.is_met is is_met for bound in bounds) for is_met in (True, False))
    left = len(bounds) - met - broken
    of = count(len(bounds), "expectation")
    return f"Of {of} {met} met, {broken} broken{f', {left} not checked' if left else ''}."
