"""Conformance suite: every published result that the packages claim to reproduce.

`SUBJECTS` lists the modules with cases; each has a function `cases()`. A case that raises an exception has failed.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module

from fabrictune.foundation.cases import Case
from fabrictune.foundation.progress import Progress

SUBJECTS = {
    "topology": (
        "fabrics",
        "paths",
        "hash_functions",
        "polarization",
        "random_hashing",
        "dual_tor",
        "three_means",
        "fairness",
    ),
    "cc": ("dcqcn_fluid", "dcqcn", "dcqcn_firmware", "swift", "barre", "differential"),
    "collectives": ("proofs", "bandwidth", "nccl_tests", "startup", "deepep"),
    "netsim": (
        "closed_forms",
        "bounds",
        "queues",
        "pfc",
        "priority_pauses",
        "transport",
        "faults",
        "path_choice",
        "ultra_ethernet",
        "deadlock",
        "laws.barre",
        "laws.dcqcn",
        "laws.dcqcn_with_pfc",
        "laws.dctcp",
        "laws.hpcc",
        "laws.hpcc_figure_11",
        "laws.hybrid",
        "laws.nscc",
        "laws.swift",
        "laws.timely",
    ),
    "rdma_bench": ("timers",),
    "trainer_probe": ("counts", "volumes", "plans", "optimizers", "pipelines", "processes", "survival"),
    "validate": ("collectives", "timers", "laws"),
}


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """Result of one case."""

    case: Case
    actual: float | None  # None where it raised or is no number
    error: str = ""

    @property
    def has_passed(self) -> bool:
        """Return whether the result is within tolerance, both ends included."""
        return self.actual is not None and bool(self.case.low <= self.actual <= self.case.high)

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON values, also where a case was given NumPy's numbers."""
        case = self.case
        return {
            "name": case.name,
            "expected": float(case.expected),
            "actual": self.actual,
            "tolerance": [float(case.low), float(case.high)],
            "passed": self.has_passed,
            "source": case.source,
            "unit": case.unit,
            "trust": case.trust,
            **({"error": self.error} if self.error else {}),
        }


def collect_cases(prefixes: Sequence[str] = ()) -> list[Case]:
    """Return the cases whose names begin with one of `prefixes`, or all of them, in the order of `SUBJECTS`."""
    cases = [
        case
        for room, subjects in SUBJECTS.items()
        if _may_match(room, prefixes)
        for subject in subjects
        for case in import_module(f"fabrictune.conformance.{room}.{subject}").cases()
    ]
    return [case for case in cases if not prefixes or case.name.startswith(tuple(prefixes))]


def _may_match(room: str, prefixes: Sequence[str]) -> bool:
    """Return whether a room can have a requested case: case names begin with the room's."""
    return not prefixes or any(prefix.startswith(room) or room.startswith(prefix) for prefix in prefixes)


def run_case(case: Case) -> CaseResult:
    """Run one case."""
    try:
        actual = float(case.run())
    except Exception as error:  # a case that cannot be run is a case that failed, and the others are still run
        return CaseResult(case=case, actual=None, error=f"{type(error).__name__}: {error}")
    return CaseResult(case=case, actual=actual if math.isfinite(actual) else None)


def run_cases(cases: Sequence[Case], progress: Progress | None = None) -> list[CaseResult]:
    """Run cases one after another; `progress` is called with the completed share."""
    results = []
    for number, case in enumerate(cases):
        results.append(run_case(case))
        if progress:
            progress((number + 1) / len(cases))
    return results


def has_failed(results: Iterable[CaseResult]) -> bool:
    """Return whether an exact case (trust A) missed; figures of other simulators and hardware are reported only."""
    return any(not result.has_passed for result in results if result.case.trust == "A")
