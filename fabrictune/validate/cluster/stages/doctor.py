"""Stage: who takes part, with which software, and which of the planned NICs are there."""

from collections.abc import Iterator

from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.cluster import NIC_ABSENT, NODE_MISSING, NODES_DIFFER
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.validate.cluster.results import StageResult, StageState
from fabrictune.validate.cluster.site import Site

COMPARED = ("fabrictune", "python", "torch")
MAX_NAMED = 5


def run_doctor(site: Site) -> StageResult:
    """Return what the nodes have."""
    missing = list(site.crew.missing.values())
    findings = (
        NODE_MISSING.finding(
            entity=state.name,
            actual=f"{state.state.value}{': ' if state.detail else ''}{state.detail}",
            expected="a node that answers",
            next_step=state.next_step,
            confidence=Confidence.MEASURED,
        )
        for state in missing
    )
    report = join_reports(
        run_check(NODE_MISSING.id, f"{len(site.crew.names):,} nodes", findings, expected="every node answers"),
        run_check(NODES_DIFFER.id, f"{len(site.machines):,} nodes", _differences(site), expected="one version of each"),
        _planned_nics(site),
    )
    return StageResult(
        name="doctor",
        state=StageState.INCOMPLETE if missing else StageState.DONE,
        reason=f"{len(missing)} of {len(site.crew.names)} nodes do not take part" if missing else "",
        report=report,
        notes=tuple(_notes(site)),
        data={"machines": site.machines},
    )


def _planned_nics(site: Site) -> CheckReport:
    if site.fabric is None:
        return skip_check(NIC_ABSENT.id, "NICs of the nodes", "no planned fabric (--fabric FILE)")
    findings = (
        NIC_ABSENT.finding(
            entity=label,
            actual="no such interface is up with an address",
            expected="a NIC of the planned fabric",
            confidence=Confidence.MEASURED,
        )
        for label in site.nics.absent
    )
    num_nics = sum(map(len, site.nics.nics.values())) + len(site.nics.absent)
    return run_check(NIC_ABSENT.id, f"{num_nics:,} planned NICs", findings, expected="every one is there")


def _differences(site: Site) -> Iterator[Finding]:
    for name in COMPARED:
        nodes: dict[str, list[str]] = {}
        for node, machine in site.machines.items():
            nodes.setdefault(str(machine[name] or "none"), []).append(node)
        if len(nodes) > 1:
            usual, *others = sorted(nodes, key=lambda version: -len(nodes[version]))
            for version in others:
                named = ", ".join(nodes[version][:MAX_NAMED])
                more = len(nodes[version]) - MAX_NAMED
                yield NODES_DIFFER.finding(
                    entity=named + (f" and {more} more" if more > 0 else ""),
                    actual=f"{name} {version}",
                    expected=f"{name} {usual}, as on {len(nodes[usual])} nodes",
                    confidence=Confidence.MEASURED,
                )


def _notes(site: Site) -> Iterator[str]:
    machines = site.machines.values()
    for what, lacks in (
        ("torch", [not one["torch"] for one in machines]),
        ("an RDMA device", [not one["rdma_devices"] for one in machines]),
        ("a GPU", [not one["num_gpus"] for one in machines]),
    ):
        if any(lacks):
            yield f"nodes without {what}: {sum(lacks)} of {len(lacks)}"
    if site.nics.strangers:
        yield f"not in the planned fabric, and not measured: {', '.join(site.nics.strangers[:MAX_NAMED])}"
