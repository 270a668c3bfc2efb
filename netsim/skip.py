"""Report of exact skip: how much of a run it took at once, or why nothing."""

from collections.abc import Mapping
from typing import Any

from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig


def describe_skip(config: PacketConfig, simulation: _engine.Simulation) -> dict[str, Any]:
    """Return what `run.json` says of skip: the mode, the events skipped and their share, and why there were none."""
    num_events, num_skipped = simulation.num_events, simulation.num_skipped_events
    return {
        "mode": config.skip,
        "events": num_skipped,
        "share": num_skipped / num_events if num_events else 0.0,
        "reason": None if config.skip == "off" or num_skipped else _reason(simulation.not_skipped),
    }


def skip_lines(run: Mapping[str, Any]) -> list[str]:
    """Return the line of a terminal for a record's `run`; none where skip is off or the engine has none."""
    skip = run.get("skip", {"mode": "off"})
    if skip["mode"] == "off":
        return []
    if skip["reason"]:
        return [f"skipped 0 %: {skip['reason']}"]
    return [f"skipped {skip['share']:.1%} of {run['events']:,} events, with the same results"]


def _reason(not_skipped: list[str]) -> str:
    if not_skipped:
        return f"runs with {' and '.join(not_skipped)} are not skipped"
    return "nothing repeated for long enough"
