"""Replays of steps whose loss was no number: on other nodes, to tell a device that computes wrongly from code and data.

Training repeats itself bit by bit. If the same step gives the same loss elsewhere, after the same losses, it is the
code or the data. If it does not, the nodes that took no part in the replay computed something else, and are evicted.

Source: ByteRobust (SOSP'25), 4.3, dual-phase replay.
"""

import math
from collections.abc import Sequence

from fabrictune.trainer_probe.operation.decisions import Decision, Diagnosis
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.rules.history import Fault, History, read_history


def decide_replay(diagnosis: Diagnosis, history: History, wait_s: float) -> Decision | None:
    """Return what to do about a loss that is no number; None for other causes."""
    if diagnosis.cause != "not a number":
        return None
    before = [fault for fault in history.faults if fault.cause == "not a number"]
    same = next((fault for fault in reversed(before) if fault.step == diagnosis.step), None)
    first = same or (before[-1] if before and before[-1].generation == history.generation - 1 else None)
    if first is None or first.generation == history.generation:
        return Decision(
            action="replay elsewhere",
            reason=f"the loss of step {diagnosis.step} is no number; the steps before it are repeated on other nodes",
            avoided=diagnosis.nodes,
            before_step=diagnosis.step,
            wait_s=wait_s,
        )
    differing = _differing_steps(first.generation, history)
    suspects = _suspects(first, history)
    if same is not None and not differing:
        return Decision(
            action="stop",
            reason=f"code or data: the loss of step {diagnosis.step} is no number in generations {first.generation} "
            f"and {history.generation}, {_where(suspects)}, after losses that are equal bit by bit",
        )
    what = f"the losses of steps {_list(differing)} differ" if differing else f"step {first.step} passed"
    return Decision(
        action="replace" if suspects else "restart",
        reason=f"nodes {', '.join(suspects) or 'unknown'} are suspected: of the steps before step {diagnosis.step} "
        f"in generations {first.generation} and {history.generation}, {what}",
        evicted=suspects,
        before_step=min(diagnosis.step, first.step),
        wait_s=wait_s,
    )


def conclude_replay(events: Sequence[Event]) -> Decision | None:
    """Return the eviction of the nodes whose loss was no number at a step that other nodes have passed since.

    None while no replay has passed its step, and where it was concluded before.
    """
    history = read_history(events)
    replayed = [fault for fault in history.faults if fault.cause == "not a number"]
    if not replayed or replayed[-1].generation >= history.generation:
        return None
    first = replayed[-1]
    concluded = any(
        event.kind == "decision" and event.number > first.number and event.values.get("evicted") for event in events
    )
    passed = history.losses.get(history.generation, {}).get(first.step)
    suspects = _suspects(first, history)
    if concluded or not suspects or passed is None or not math.isfinite(passed):
        return None
    return Decision(
        action="go on",
        reason=f"nodes {', '.join(suspects)} are suspected: the loss of step {first.step} was no number in generation "
        f"{first.generation} and is {passed:.6g} on other nodes in generation {history.generation}",
        evicted=suspects,
    )


def _suspects(first: Fault, history: History) -> tuple[str, ...]:
    """Return the nodes of the first attempt that took no part in the last."""
    present = history.nodes.get(history.generation, ())
    return tuple(node for node in history.nodes.get(first.generation, first.nodes) if node not in present)


def _differing_steps(generation: int, history: History) -> list[int]:
    """Return the steps whose finite losses differ between a generation and the last."""
    before, now = history.losses.get(generation, {}), history.losses.get(history.generation, {})
    return [
        step
        for step in sorted(before.keys() & now.keys())
        if math.isfinite(before[step]) and math.isfinite(now[step]) and before[step] != now[step]
    ]


def _where(suspects: tuple[str, ...]) -> str:
    return "on other nodes" if suspects else "on the same nodes, as there were no others"


def _list(steps: list[int]) -> str:
    return ", ".join(map(str, steps[:5])) + (f" and {len(steps) - 5} more" if len(steps) > 5 else "")
