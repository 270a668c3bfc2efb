"""What `validate cluster` prints: the plan, each stage as it ends, and the measurements nearest to their limits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fabrictune.cli.fleet.nodes import NodeOptions, hosts_and_way
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.foundation.units import PS_PER_S

if TYPE_CHECKING:
    from fabrictune.validate.cluster.results import Measurement, StageResult
    from fabrictune.validate.cluster.validation import Validation

MAX_SHOWN = 12  # measurements of a stage on the terminal


def print_plan(nodes: NodeOptions, python: str) -> None:
    """Print what would run where."""
    from fabrictune.foundation.children import module_command
    from fabrictune.validate.cluster.crew import NODE_PROCESS
    from fabrictune.validate.cluster.validation import STAGES

    hosts, transport = hosts_and_way(nodes)
    print_table(("stage", "what it does"), [(name, meaning) for name, (_, meaning) in STAGES.items()])
    program = " ".join(module_command(NODE_PROCESS, python=python))
    print_lines(["on each node, for as long as the validation runs, and the script of `fleet collect`:"])
    print_lines(f"  {host.name}: {program}    (as: {transport.describe(host)})" for host in hosts)


def print_stage(result: "StageResult") -> None:
    """Print how a stage ended."""
    reason = f": {result.reason}" if result.reason else ""
    print_lines([f"{result.name}: {result.state.value}{reason} ({result.wall_s:.1f} s)"])


def document(validation: "Validation") -> dict[str, Any]:
    """Return the validation as JSON values, without its findings."""
    from fabrictune.validate.cluster.record import measurement_rows

    results = list(validation.results.values())
    return {
        "is_complete": validation.is_complete,
        "is_stopped": validation.is_stopped,
        "stages": [
            {"stage": one.name, "state": one.state.value, "reason": one.reason, "wall_s": one.wall_s} for one in results
        ],
        "measurements": measurement_rows(results),
    }


def print_summary(validation: "Validation") -> None:
    """Print the measurements that a person looks at first, and how the stages ended."""
    for result in validation.results.values():
        shown = _worst(result.measurements)
        if not shown:
            continue
        print_lines(["", f"{result.name}:"])
        print_table(
            ("part", "what", "measured", "predicted", "over hash seeds", "limit", "verdict"),
            [_cells(one) for one in shown],
        )
        if len(shown) < len(result.measurements):
            print_lines([f"... and {len(result.measurements) - len(shown):,} more in the record"])
    for result in validation.results.values():
        print_lines(f"note: {result.name}: {note}" for note in result.notes)
    print_table(
        ("stage", "state", "reason"), [(one.name, one.state.value, one.reason) for one in validation.results.values()]
    )
    states = [one.state.value for one in validation.results.values()]
    print_lines([", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))])


def _worst(measurements: "Sequence[Measurement]") -> "Sequence[Measurement]":
    """Return those nearest to their limit or beyond, in their order."""

    def margin(one: "Measurement") -> float:
        if one.limit <= 0 or one.measured < 0:
            return 0.0 if one.measured < 0 else float("inf")
        return one.limit / one.measured if one.unit == "s" and one.measured else one.measured / one.limit

    nearest = sorted(measurements, key=margin)[:MAX_SHOWN]
    return [one for one in measurements if any(one is kept for kept in nearest)]


def _cells(one: "Measurement") -> tuple[str, ...]:
    return (
        one.part,
        one.subject,
        _value(one.measured, one.unit) if one.measured >= 0 else one.detail or "failed",
        _value(one.predicted, one.unit),
        f"{_value(one.predicted_low, one.unit)} to {_value(one.predicted_high, one.unit)}"
        if one.predicted >= 0
        else "",
        _value(one.limit, one.unit),
        one.verdict.value,
    )


def _value(value: float, unit: str) -> str:
    from fabrictune.foundation.units import format_duration, format_number, format_rate

    if value < 0:
        return ""
    if unit == "bit/s":
        return format_rate(value)
    return format_duration(value * PS_PER_S) if unit == "s" else f"{format_number(value)} {unit}"
