"""Catalog of every rule that has findings, by id. A new rule is an entry in a module listed here."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from fabrictune.foundation.finding_rules import (
    calibration,
    cluster,
    collectives,
    counters,
    diagnostics,
    fabric,
    fleet,
    gray_loss,
    hangs,
    nccl,
    paths,
    rdma,
    simulation,
    spans,
    survival,
    testbed,
)
from fabrictune.foundation.finding_rules.schema import Rule

SUBJECTS: Mapping[str, Sequence[Rule]] = {
    "Fabrics": fabric.PLAUSIBILITY,
    "Changes of a fabric": fabric.CHANGES,
    "ECMP collisions": paths.COLLISIONS,
    "Discovered paths": paths.PROBES,
    "Simulated runs": simulation.RUNS,
    "Sweeps": simulation.SWEEPS,
    "Measured collectives": collectives.BENCHMARKS,
    "Jobs and validation": collectives.JOBS,
    "Calibrations": calibration.FITS,
    "Effective training time": survival.EFFECTIVE_TIME,
    "Gray loss": gray_loss.GRAY_LOSS,
    "Diagnostics of nodes": diagnostics.NODES,
    "Stragglers": spans.STRAGGLERS,
    "Decay": spans.DECAYS,
    "RDMA and timers": rdma.TIMERS,
    "Counters of NICs": counters.NIC_COUNTERS,
    "Fleets": fleet.FLEETS,
    "Validated clusters": cluster.CLUSTERS,
    "Jobs in logs of NCCL": nccl.JOBS,
    "State of running jobs": nccl.STATES,
    "Jobs that stand still": hangs.HANGS,
    "Links of a testbed": testbed.TESTBED,
}
RULES: Mapping[str, Rule] = {rule.id: rule for rule in chain.from_iterable(SUBJECTS.values())}

assert len(RULES) == sum(map(len, SUBJECTS.values())), "two rules of one id"


def find_rule(finding_id: str) -> Rule | None:
    """Return the rule of a finding's id, None for one of another version."""
    return next((rule for rule in RULES.values() if rule.covers(finding_id)), None)


def check_rules(ids: Iterable[str]) -> None:
    """Assert that ids of findings and checks are of rules of the catalog."""
    unknown = sorted({one for one in ids if find_rule(one) is None})
    assert not unknown, f"findings of no rule of the catalog: {', '.join(unknown)}"
