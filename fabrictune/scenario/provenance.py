"""Provenance of a record: the scenario's name, question, text, notes and collective.

Notes are what the answer assumes without being told: what importers and readers of traces filled in, guessed or left
out, what ranks share, and settings without effect.
"""

from collections.abc import Iterable
from typing import Any

from fabrictune.collectives.bounds import bus_factor
from fabrictune.foundation.traces import Operation
from fabrictune.scenario.composition import Composed
from fabrictune.scenario.extensions import describe_extensions
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.traffic import AllReduceSpec, CollectiveSpec


def describe_composed(composed: Composed) -> dict[str, Any]:
    """Return the part of `run.json` that a scenario with its paths has."""
    description = describe_scenario(composed.scenario, composed.notes)
    if extensions := describe_extensions(composed.scenario, getattr(composed, "law", None)):
        description["extensions"] = extensions
    if composed.fold is not None:
        description["fold"] = composed.fold.as_json()
    spec = composed.scenario.traffic.spec
    if isinstance(spec, AllReduceSpec):
        description["collective"] = _describe_collective(spec, composed, Operation.ALL_REDUCE, spec.layout.dp)
    elif isinstance(spec, CollectiveSpec):
        num_ranks = getattr(spec.layout, spec.axis)
        description["collective"] = _describe_collective(spec, composed, Operation[spec.operation.upper()], num_ranks)
    return description


def describe_scenario(scenario: Scenario, notes: Iterable[str] = ()) -> dict[str, Any]:
    """Return the part of `run.json` that every answer to a scenario has: the text is the one that was loaded."""
    description: dict[str, Any] = {"name": scenario.name, "question": scenario.question}
    if unique := list(dict.fromkeys(notes)):
        description["notes"] = unique
    if scenario.document is not None:
        description["scenario"] = scenario.document.text
    return description


def _describe_collective(
    spec: AllReduceSpec | CollectiveSpec, composed: Composed, operation: Operation, num_ranks: int
) -> dict[str, Any]:
    """Return what the bus bandwidth of the job's collectives is computed from."""
    fabric = composed.network.fabric
    return {
        "operation": operation.name.lower(),
        "bytes": spec.message_bytes,
        "busbw_factor": bus_factor(operation, num_ranks),
        "line_rate_bps": int(fabric.port_rate_bps_P[fabric.port_nic_P >= 0].min()),
    }
