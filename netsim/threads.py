"""Report of the threads of a run: how many parts it was cut into, or why it was not."""

from collections.abc import Mapping
from typing import Any

from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig


def describe_threads(config: PacketConfig, simulation: _engine.Simulation) -> dict[str, Any]:
    """Return what `run.json` says of threads: how many were allowed, how many there were, and why there was one."""
    return {"allowed": config.threads, "used": simulation.num_parts, "reason": simulation.not_cut or None}


def thread_lines(run: Mapping[str, Any]) -> list[str]:
    """Return the line of a terminal for a record's `run`; none where one thread is allowed or the engine has one."""
    threads = run.get("threads", {"allowed": 1})
    if threads["allowed"] == 1:
        return []
    if threads["reason"]:
        return [f"one thread: {threads['reason']}"]
    return [f"{threads['used']} threads, with the same results as one"]
