"""An audit as a run record: nodes, facts, changes, and the findings of every rule."""

from typing import Any

from fabrictune.fleet.audit.changes import Change, propose_changes
from fabrictune.fleet.audit.report import check_states, judge_all
from fabrictune.fleet.audit.rule_files import AuditRule
from fabrictune.fleet.collect.collection import Collection
from fabrictune.fleet.facts.derived import fleet_facts
from fabrictune.fleet.facts.fact import FleetFacts, text_of
from fabrictune.foundation.checks import join_reports
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns

KIND = "fleet audit"
SEED = 0  # nothing here is drawn at random
MAX_NAMED = 5


def audit_record(
    collection: Collection, rules: tuple[AuditRule, ...], *, sources: tuple[str, ...], started: float
) -> tuple[RunRecord, tuple[Change, ...]]:
    """Return the record of an audit, and the proposed changes; `started` is what `time.perf_counter` said then."""
    facts = fleet_facts(collection.readings)
    report, objections = judge_all(rules, facts)
    report = join_reports(check_states(collection.states, collection.missing), report)
    changes = propose_changes(objections, facts)
    configuration = {"sources": list(sources), "num_rules": len(rules), "is_partial": collection.is_partial}
    run: dict[str, Any] = describe_run(seed=SEED, started=started, configuration=configuration)
    record = RunRecord(
        kind=KIND,
        run={**run, "notes": _notes(collection, facts)},
        tables={
            "fleet_nodes": to_columns("fleet_nodes", _nodes(collection, facts)),
            "fleet_facts": to_columns("fleet_facts", _facts(facts)),
            "fleet_changes": to_columns("fleet_changes", _changes(changes)),
        },
        findings=report.findings,
        checks=report.checks,
    )
    return record, changes


def _nodes(collection: Collection, facts: FleetFacts) -> list[dict[str, Any]]:
    return [
        {
            "node": one.name,
            "role": facts.roles.get(one.name, ""),
            "state": one.state.value,
            "detail": one.detail,
            "wall_s": one.wall_s,
        }
        for one in collection.states
    ]


def _facts(facts: FleetFacts) -> list[dict[str, Any]]:
    return [
        {"node": one.node, "device": one.device, "fact": one.name, "value": text_of(one.value), "where": one.where}
        for one in facts.facts
    ]


def _changes(changes: tuple[Change, ...]) -> list[dict[str, Any]]:
    return [
        {"node": one.node, "kind": one.kind, "change": one.text, "rule": one.rule, "effect": one.effect}
        for one in changes
    ]


def _notes(collection: Collection, facts: FleetFacts) -> list[str]:
    """Return what was not read, by file or command and reason, with how many nodes, and what is assumed."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for node, what, why in facts.unread:
        nodes.setdefault((what, why), []).append(node)
    notes = [
        f"not read on {len(names):,} of {len(collection.readings):,} nodes: {what}: {why} "
        f"({', '.join(names[:MAX_NAMED])}{', ...' if len(names) > MAX_NAMED else ''})"
        for (what, why), names in nodes.items()
    ]
    cut = [reading.name for reading in collection.readings if reading.is_cut]
    notes += [f"cut off, more was there than may be: {', '.join(cut[:MAX_NAMED])}"] if cut else []
    if any(True for _ in facts.named("job.survives_watchdog")):
        notes.append("assumed for job.survives_watchdog: retransmission timers of a ConnectX-6, as measured")
    return notes
