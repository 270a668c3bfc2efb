"""Stages of ranks: collectives with every result checked, and a short training that has to learn.

A collective's time is predicted as that of its ring on this fabric: the slowest flow of the ring, when all send at
once, carries the bytes of each rank, and the smallest size measured is what a call costs. Sizes whose messages take
less than a call have no limit. What gloo copies and adds on the processors is left out, and covered by the limit
(`slowdown` of cluster.collective-slow). What is slow is measured again, and the better counts.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabrictune.foundation.checks import Check, CheckReport, join_reports, run_check
from fabrictune.foundation.finding_rules.cluster import COLLECTIVE_SLOW, LOSS_NOT_FALLING, PART_FAILED
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.records import parse_finding
from fabrictune.foundation.units import NS_PER_S, PS_PER_S, format_bytes, format_duration
from fabrictune.validate.cluster.ranks import RankPlan, RanksOutcome, plan_ranks, run_ranks
from fabrictune.validate.cluster.rate_model import Expected, RateModel
from fabrictune.validate.cluster.results import UNKNOWN, Measurement, StageResult, StageState, Verdict
from fabrictune.validate.cluster.site import Site

OPERATIONS = ("all_reduce", "all_gather")
SENT = {"all_reduce": 2.0, "all_gather": 1.0}  # of the size, times (N - 1) / N, by each rank of a ring
MIN_BYTES, STEP_FACTOR = 1024, 16
NUM_WARMUPS, NUM_ITERATIONS = 2, 8
NUM_STEPS = 4
BITS = 8


def run_collectives(site: Site) -> StageResult:
    """Measure collectives between all nodes."""
    plan = plan_ranks(site)
    if isinstance(plan, str):
        return StageResult(name="collectives", state=StageState.SKIPPED, reason=plan)
    spec = {
        "names": list(OPERATIONS),
        "min_bytes": MIN_BYTES,
        "max_bytes": max(site.settings.max_bytes, MIN_BYTES),
        "step_factor": STEP_FACTOR,
        "num_warmups": NUM_WARMUPS,
        "num_iterations": NUM_ITERATIONS,
    }
    settings = {"spec": spec, "backend": plan.backend}
    outcome = run_ranks(site, plan, "collectives", settings)
    failed = _failures("collectives", plan, outcome)
    if outcome.result is None:
        return _incomplete("collectives", outcome, failed)
    rows = outcome.result["rows"]
    measured = list(_collectives(site, plan, rows))
    if any(one.verdict == Verdict.BAD for one in measured):
        again = run_ranks(site, plan, "collectives", settings)
        rows = _faster(rows, again.result["rows"]) if again.result else rows
        measured = list(_collectives(site, plan, rows))
    slow = run_check(
        COLLECTIVE_SLOW.id, f"{len(measured):,} collectives", _slow(measured), expected="none above its limit"
    )
    return StageResult(
        name="collectives",
        state=StageState.DONE,
        measurements=measured,
        report=join_reports(failed, slow, _report_of(outcome.result)),
        notes=(
            f"{plan.num_ranks} ranks over {plan.backend}, {plan.ranks_per_node} a node; predicted: the ring's messages "
            "on this fabric, and the time of the smallest size for each call",
        ),
    )


def run_training(site: Site) -> StageResult:
    """Train the smallest model for a few steps over all nodes, and see that it learns."""
    plan = plan_ranks(site)
    if isinstance(plan, str):
        return StageResult(name="training", state=StageState.SKIPPED, reason=plan)
    recipe = {
        "degrees": {"layout": {"dp": plan.num_ranks}, "num_batches": 1, "batch_size": 2},
        "num_steps": NUM_STEPS,
        "device": "cuda" if plan.backend == "nccl" else "cpu",
    }
    outcome = run_ranks(site, plan, "training", {"recipe": recipe})
    failed = _failures("training", plan, outcome)
    if outcome.result is None:
        return _incomplete("training", outcome, failed)
    rows = outcome.result["rows"]
    report = join_reports(failed, _learns(rows), _report_of(outcome.result))
    return StageResult(name="training", state=StageState.DONE, measurements=list(_steps(rows)), report=report)


def _collectives(site: Site, plan: RankPlan, rows: Sequence[Mapping[str, Any]]) -> Iterator[Measurement]:
    ring = _ring(site, plan)
    factor = site.rules.threshold(COLLECTIVE_SLOW, "slowdown")
    call_s: dict[tuple[str, bool], float] = {}
    for row in rows:
        name, size_bytes, time_s = row["operation"], int(row["size_bytes"]), row["median_ns"] / NS_PER_S
        base_s = call_s.setdefault((name, bool(row["is_in_place"])), time_s)
        sent_bits = BITS * SENT[name] * size_bytes * (plan.num_ranks - 1) / plan.num_ranks
        place = "in place, " if row["is_in_place"] else ""
        subject = f"{name}, {place}{format_bytes(size_bytes)}"
        is_known = math.isfinite(ring.median_bps) and sent_bits / ring.median_bps > base_s
        predicted_s, least_s, most_s = (
            base_s + sent_bits / rate for rate in (ring.median_bps, ring.high_bps, ring.low_bps)
        )
        limit_s = factor * (base_s + sent_bits / ring.least_bps)
        yield Measurement(
            part=f"{plan.num_ranks} ranks over {plan.backend}",
            subject=subject,
            unit="s",
            measured=time_s,
            predicted=predicted_s if is_known else UNKNOWN,
            predicted_low=least_s if is_known else UNKNOWN,
            predicted_high=most_s if is_known else UNKNOWN,
            limit=limit_s if is_known else UNKNOWN,
            verdict=Verdict.NO_LIMIT if not is_known else Verdict.GOOD if time_s <= limit_s else Verdict.BAD,
            detail="" if is_known else "its messages take less time than a call: no question of the fabric",
        )


def _faster(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the faster row of each case."""
    return [min(pair, key=lambda row: float(row["median_ns"])) for pair in zip(first, second, strict=True)]


def _ring(site: Site, plan: RankPlan) -> Expected:
    """Return what the slowest flow of a ring of the ranks gets, when all send at once."""
    matrix = site.results.get("matrix")
    model = RateModel(site.fabric, matrix.data.get("host_bps", {}) if matrix else {})
    flows = []
    for rank in range(plan.num_ranks):
        ends = [(rank + step) % plan.num_ranks for step in (0, 1)]
        nodes = [site.nics.nics[plan.node_of(end)] for end in ends]
        near, far = (own[end % plan.ranks_per_node % len(own)] for own, end in zip(nodes, ends, strict=True))
        if near.node != far.node:
            flows.append((near, far))
    return model.slowest(flows)


def _slow(measured: Sequence[Measurement]) -> Iterator[Finding]:
    for one in measured:
        if one.verdict == Verdict.BAD:
            yield COLLECTIVE_SLOW.finding(
                entity=one.subject,
                actual=f"{_time(one.measured)}, {one.measured / one.predicted:.1f} times the prediction",
                expected=f"at most {_time(one.limit)}; predicted {_time(one.predicted)}",
                confidence=Confidence.MEASURED,
                evidence=("table cluster_measurements",),
            )


def _steps(rows: Sequence[Mapping[str, Any]]) -> Iterator[Measurement]:
    for row in rows:
        waited_s = sum(value for name, value in row.items() if name.startswith("exposed_")) / NS_PER_S
        yield Measurement(
            part="training",
            subject=f"step {row['step']}",
            unit="s",
            measured=row["elapsed_ns"] / NS_PER_S,
            detail=f"loss {row['loss']:.4f}, waiting for communication {_time(waited_s)}",
        )


def _learns(rows: Sequence[Mapping[str, Any]]) -> CheckReport:
    first, last = rows[0]["loss"], rows[-1]["loss"]
    finding = LOSS_NOT_FALLING.finding(
        entity="training",
        actual=f"loss {first:.4f} at step {rows[0]['step']}, {last:.4f} at step {rows[-1]['step']}",
        expected="a loss that falls",
        confidence=Confidence.MEASURED,
    )
    is_falling = 0 <= last < first
    return run_check(
        LOSS_NOT_FALLING.id,
        f"{len(rows)} steps",
        [] if is_falling else [finding],
        expected="a loss that falls",
        actual=f"{first:.4f} to {last:.4f}",
    )


def _failures(part: str, plan: RankPlan, outcome: RanksOutcome) -> CheckReport:
    findings = (
        PART_FAILED.finding(entity=f"{node}: {part}", actual=error, expected="no error", confidence=Confidence.MEASURED)
        for node, error in outcome.errors.items()
    )
    return run_check(PART_FAILED.id, f"{plan.num_ranks} ranks of {part}", findings, expected="no error")


def _incomplete(name: str, outcome: RanksOutcome, report: CheckReport) -> StageResult:
    node, error = next(iter(outcome.errors.items()), ("rank 0", "no result"))
    return StageResult(name=name, state=StageState.INCOMPLETE, reason=f"{node}: {error}", report=report)


def _report_of(result: Mapping[str, Any]) -> CheckReport:
    return CheckReport(
        checks=tuple(Check.from_json(row) for row in result["checks"]),
        findings=tuple(parse_finding(row) for row in result["findings"]),
    )


def _time(seconds: float) -> str:
    return format_duration(seconds * PS_PER_S)
