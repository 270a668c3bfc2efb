"""Checks of a diagnosis: who fails, who is silent, who is slower than its peers or its hardware, whose bits differ."""

from collections.abc import Iterator

from fabrictune.diagnostics.diagnosis import Diagnosis
from fabrictune.diagnostics.figures import FIGURES
from fabrictune.diagnostics.peers import different_bits, slow_nodes
from fabrictune.diagnostics.plan import BISECTION, GROUP_TESTS
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.diagnostics import (
    BELOW_PROFILE,
    BITS_DIFFER,
    GROUP_FAILS,
    NODE_FAILS,
    NODE_SILENT,
    NODE_SLOW,
)
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.units import format_fraction
from fabrictune.hardware.profile import HardwareProfile

MAX_EVIDENCE = 5


def check_diagnosis(
    diagnosis: Diagnosis, *, hardware: HardwareProfile | None = None, rules: RuleSettings = CATALOG_SETTINGS
) -> CheckReport:
    """Return the checks of all ranks and groups."""
    num_ranks = f"{diagnosis.plan.num_ranks} ranks"
    return join_reports(
        run_check(NODE_SILENT.id, num_ranks, _silent(diagnosis), expected="answers", actual="all answered"),
        run_check(
            NODE_FAILS.id,
            f"{sum(not result.skipped for result in diagnosis.results.values())} tests of {num_ranks}",
            _failing(diagnosis),
            expected="no fault",
            actual="no fault",
        ),
        _slow(diagnosis, rules),
        _bits(diagnosis),
        _groups(diagnosis),
        _profile(diagnosis, hardware, rules),
    )


def blamed_ranks(findings: tuple[Finding, ...], diagnosis: Diagnosis) -> list[int]:
    """Return the ranks that findings name."""
    entities = {finding.entity for finding in findings}
    return [rank for rank in range(diagnosis.plan.num_ranks) if diagnosis.label(rank) in entities]


def _silent(diagnosis: Diagnosis) -> Iterator[Finding]:
    for rank, part in sorted(diagnosis.silent.items()):
        yield NODE_SILENT.finding(
            entity=diagnosis.label(rank),
            actual=f"did not answer in {part}",
            expected="an answer within the limit of each test",
            confidence=Confidence.MEASURED,
        )


def _failing(diagnosis: Diagnosis) -> Iterator[Finding]:
    for (test, rank), result in diagnosis.results.items():
        for fault in result.faults:
            yield NODE_FAILS.finding(
                entity=diagnosis.label(rank),
                actual=f"{test}: {fault}",
                expected="no fault",
                confidence=Confidence.MEASURED,
                evidence=("table diagnosed_nodes",),
            )
    for rank in diagnosis.bisection.guilty if diagnosis.bisection else ():
        if rank in diagnosis.silent:
            continue
        failing = [group for group in diagnosis.groups if group.is_failing and rank in group.ranks]
        yield NODE_FAILS.finding(
            entity=diagnosis.label(rank),
            actual=f"all {len(failing)} groups with it fail an all-reduce, and others pass",
            expected="groups that pass",
            confidence=Confidence.MEASURED,
            evidence=tuple(fault for group in failing for fault in group.faults)[:MAX_EVIDENCE],
        )


def _slow(diagnosis: Diagnosis, rules: RuleSettings) -> CheckReport:
    least = int(rules.threshold(NODE_SLOW, "least_nodes"))
    subject = f"figures of {diagnosis.plan.num_ranks} ranks"
    if len(diagnosis.ranks) < least:
        return skip_check(NODE_SLOW.id, subject, f"it takes {least} ranks to say which is slow")
    return run_check(
        NODE_SLOW.id,
        subject,
        (
            NODE_SLOW.finding(
                entity=diagnosis.label(slow.rank),
                actual=f"{FIGURES[slow.figure].label}: {FIGURES[slow.figure].show(slow.value)}, "
                f"{slow.outlier.deviation_fraction:.0%} more time ({slow.outlier.distance})",
                expected=f"{FIGURES[slow.figure].show(slow.usual)}, the median of {slow.num_peers} ranks",
                confidence=Confidence.MEASURED,
                evidence=(f"table diagnosed_nodes: {slow.test}, {slow.figure}",),
                next_step=FIGURES[slow.figure].next_step,
            )
            for slow in slow_nodes(diagnosis.results, rules)
        ),
        expected="like their peers",
        actual="all are",
    )


def _bits(diagnosis: Diagnosis) -> CheckReport:
    num_digests = sum(bool(result.digest) for result in diagnosis.results.values())
    subject = f"training steps of {num_digests} ranks"
    if num_digests < 2:
        return skip_check(BITS_DIFFER.id, subject, "it takes two ranks to compare their bits")
    findings = (
        BITS_DIFFER.finding(
            entity=diagnosis.label(other.rank),
            actual="other loss or gradients" + (", and no result is that of most" if other.is_tied else ""),
            expected=f"the bits of {other.num_same} of {other.num_ranks} ranks of its kind",
            confidence=Confidence.MEASURED,
            evidence=("table diagnosed_nodes: training step, digest",),
        )
        for other in different_bits(diagnosis.results)
    )
    return run_check(BITS_DIFFER.id, subject, findings, expected="the same bits", actual="all the same")


def _groups(diagnosis: Diagnosis) -> CheckReport:
    """Return the check of groups that fail although no member of them is named."""
    subject = f"{len(diagnosis.groups)} groups"
    if not diagnosis.groups:
        reasons = [diagnosis.left_out[test] for test in GROUP_TESTS if test in diagnosis.left_out]
        return skip_check(GROUP_FAILS.id, subject, (reasons or ["no test of groups was asked for"])[0])
    named = {*(diagnosis.bisection.guilty if diagnosis.bisection else ()), *diagnosis.silent}
    unresolved = diagnosis.bisection.unresolved if diagnosis.bisection else ()
    failing = {
        group.ranks: group.faults
        for group in diagnosis.groups
        if group.is_failing and named.isdisjoint(group.ranks) and (group.test != BISECTION or group.ranks in unresolved)
    }
    findings = (
        GROUP_FAILS.finding(
            entity=", ".join(map(diagnosis.label, ranks)),
            actual=faults[0],
            expected="a group that passes",
            confidence=Confidence.MEASURED,
            evidence=faults[1:MAX_EVIDENCE],
        )
        for ranks, faults in failing.items()
    )
    return run_check(GROUP_FAILS.id, subject, findings, expected="groups that pass", actual="all pass")


def _profile(diagnosis: Diagnosis, hardware: HardwareProfile | None, rules: RuleSettings) -> CheckReport:
    subject = "figures against the hardware profile"
    if hardware is None:
        return skip_check(BELOW_PROFILE.id, subject, "no hardware profile was given (--hardware)")
    limits = {
        "gpu_product_flops_per_s": hardware.gpu.gemm.best_flops_per_s,
        "gpu_copy_bytes_per_s": hardware.gpu.memory.best_bytes_per_s,
    }
    compared = [
        (rank, figure, value)
        for (_, rank), result in diagnosis.results.items()
        for figure, value in result.figures.items()
        if figure in limits
    ]
    if not compared:
        return skip_check(
            BELOW_PROFILE.id, subject, "no rank has a figure that the profile has: GPUs' products, copies"
        )
    share = rules.threshold(BELOW_PROFILE, "share")
    findings = (
        BELOW_PROFILE.finding(
            entity=diagnosis.label(rank),
            actual=f"{FIGURES[figure].label}: {FIGURES[figure].show(value)}",
            expected=f"{format_fraction(share)} of {FIGURES[figure].show(limits[figure])}, as {hardware.name} has it",
            confidence=Confidence.MEASURED,
            evidence=("table diagnosed_nodes",),
            next_step=FIGURES[figure].next_step,
        )
        for rank, figure, value in compared
        if value < share * limits[figure]
    )
    return run_check(BELOW_PROFILE.id, subject, findings, expected=f"{format_fraction(share)} of it", actual="all are")
