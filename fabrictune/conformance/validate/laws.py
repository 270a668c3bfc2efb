"""Effect of a congestion-control law on training where the fabric has room for it: next to nothing."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from fabrictune.foundation.cases import Case, around
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.settings.binding import bind
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import simulate

_LAWS = ("dcqcn", "dctcp", "timely", "hpcc", "swift", "hybrid")
_FULL_BISECTION = {
    "builder": "clos",
    "num_hosts": 32,
    "hosts_per_tor_set": 8,
    "nics_per_host": 1,
    "tiers": 2,
    "downlink_split": 1,
    "uplinks_per_tor": 8,
}
_STEPS = {
    "all-reduce": {"workload": "all_reduce", "layout": {"dp": 32}, "message": "32 MB"},
    "all-to-all": {
        "workload": "collective",
        "operation": "all_to_all",
        "layout": {"dp": 32},
        "message": "32 MB",
    },
}


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for step in _STEPS:
        for law in _LAWS:
            yield Case(
                name=f"validate.law-over-pfc-alone.{step}.{law}",
                source="ASTRA-sim on ns-3 (HotI 2022): PFC alone, DCQCN, DCTCP, TIMELY and HPCC train in nearly the"
                " same time; here a collective of 32 NICs at full bisection, and other laws too",
                unit="times as long",
                **around(1.0, 0.05),
                run=partial(_over_pfc_alone, step, law),
                trust="B",
            )


def _over_pfc_alone(step: str, law: str) -> float:
    return _makespan_ps(step, law) / _makespan_ps(step, "none")


@cache
def _makespan_ps(step: str, law: str) -> float:
    tree = {"name": step, "fabric": _FULL_BISECTION, "traffic": _STEPS[step], "law": law}
    return METRICS["makespan"].measure(simulate(bind(Scenario, tree, folder=Path())))
