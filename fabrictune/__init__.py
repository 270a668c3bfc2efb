"""Network and cluster performance tuning for large GPU clusters.

    import fabrictune as ft

    run = ft.simulate("incast.yaml", overrides={"law": "swift"})
    ft.metrics(run)["completion_time.p99"]  # picoseconds
    run.frame("transfers")

Each name is imported on first use, so `import fabrictune` itself costs next to nothing. `fabrictune.api` documents the
functions; names outside `__all__` are internal and may change in any release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabrictune import plot as plot
    from fabrictune.api.fabrics import build_fabric as build_fabric
    from fabrictune.api.fabrics import load_fabric as load_fabric
    from fabrictune.api.fabrics import save_fabric as save_fabric
    from fabrictune.api.plans import plan_job as plan_job
    from fabrictune.api.plans import plan_placement as plan_placement
    from fabrictune.api.records import metrics as metrics
    from fabrictune.api.records import read_record as read_record
    from fabrictune.api.records import write_page as write_page
    from fabrictune.api.scenarios import load_scenario as load_scenario
    from fabrictune.api.scenarios import make_scenario as make_scenario
    from fabrictune.api.studies import analyze as analyze
    from fabrictune.api.studies import compare_variants as compare_variants
    from fabrictune.api.studies import explain_link as explain_link
    from fabrictune.api.studies import simulate as simulate
    from fabrictune.api.studies import sweep as sweep
    from fabrictune.foundation.errors import FabrictuneError as FabrictuneError
    from fabrictune.foundation.errors import FabrictuneWarning as FabrictuneWarning
    from fabrictune.foundation.errors import InputError as InputError
    from fabrictune.foundation.records import Finding as Finding
    from fabrictune.foundation.records import RunRecord as RunRecord
    from fabrictune.foundation.records import Severity as Severity
    from fabrictune.scenario.schema import Scenario as Scenario
    from fabrictune.topology.fabric import Fabric as Fabric

_MODULE_OF = {
    "Fabric": "fabrictune.topology.fabric",
    "FabrictuneError": "fabrictune.foundation.errors",
    "FabrictuneWarning": "fabrictune.foundation.errors",
    "Finding": "fabrictune.foundation.records",
    "InputError": "fabrictune.foundation.errors",
    "RunRecord": "fabrictune.foundation.records",
    "Scenario": "fabrictune.scenario.schema",
    "Severity": "fabrictune.foundation.records",
    "analyze": "fabrictune.api.studies",
    "build_fabric": "fabrictune.api.fabrics",
    "compare_variants": "fabrictune.api.studies",
    "explain_link": "fabrictune.api.studies",
    "load_fabric": "fabrictune.api.fabrics",
    "load_scenario": "fabrictune.api.scenarios",
    "make_scenario": "fabrictune.api.scenarios",
    "metrics": "fabrictune.api.records",
    "plan_job": "fabrictune.api.plans",
    "plan_placement": "fabrictune.api.plans",
    "read_record": "fabrictune.api.records",
    "save_fabric": "fabrictune.api.fabrics",
    "simulate": "fabrictune.api.studies",
    "sweep": "fabrictune.api.studies",
    "write_page": "fabrictune.api.records",
}

__all__ = [
    "Fabric",
    "FabrictuneError",
    "FabrictuneWarning",
    "Finding",
    "InputError",
    "RunRecord",
    "Scenario",
    "Severity",
    "analyze",
    "build_fabric",
    "compare_variants",
    "explain_link",
    "load_fabric",
    "load_scenario",
    "make_scenario",
    "metrics",
    "plan_job",
    "plan_placement",
    "plot",
    "read_record",
    "save_fabric",
    "simulate",
    "sweep",
    "write_page",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name == "plot":
        return import_module("fabrictune.plot")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'fabrictune' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
