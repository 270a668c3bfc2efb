"""The verdict on a run: what the job made of its faults, from its journal, its last checkpoint and what it left behind.

Pure: everything observed is given. Times are of one monotonic clock; steps are the run's own median before the fault.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from fabrictune.trainer_probe.operation.events import Event
from tests.chaos.plan import BY_NAME, MEMORY_EVERY, Fault

DOWN_WITHIN_S = 10.0
COPIED_AFTER = 2 * MEMORY_EVERY  # steps of a generation: its peers then have copies of one save


@dataclass(frozen=True, kw_only=True)
class Done:
    """An injection as it was carried out."""

    fault: str
    at_s: float  # on the job's clock
    ranks: tuple[int, ...] = ()  # victims
    nodes: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What the harness saw of a run."""

    number: int
    folder: str
    fault: Fault
    done: tuple[Done, ...]
    events: tuple[Event, ...]
    exit_code: int | None  # of the driver; None where it was still running at the end of our patience
    is_identical: bool | None  # final parameters and those of the undisturbed run; None where there are none
    losses_differ_at: int | None  # the first step whose loss is another than the undisturbed run's
    down_s: tuple[float, ...] = ()  # from each decision to the end of the last rank's process, as we saw it
    leftovers: tuple[str, ...] = ()
    duration_s: float
    load: float  # of the machine, processes a processor


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A run's line in the session's file."""

    number: int
    fault: str
    folder: str
    is_recovered: bool
    is_stopped_named: bool
    is_identical: bool | None
    intervals_lost: float
    has_missed_copies: bool = False  # went on from storage, though a peer had time for its copies
    num_restores: int  # generations after the first
    num_needless: int  # of those, more than there were faults that need one
    is_slow: bool  # a run with a slow but healthy rank
    found: tuple[bool, ...]  # a fault with a guilty one: whether it was named
    named: tuple[bool, ...]  # a fatal diagnosis: whether it is right
    remarks: tuple[bool, ...] = ()  # one that ends nobody: whether it is right
    num_steps_before: int  # the first fault: what a step takes is known from two on
    detection_s: float | None
    detection_steps: float | None
    down_s: float | None
    recovery_steps: float | None
    step_s: float | None
    leftovers: tuple[str, ...]
    failures: tuple[str, ...]
    injected: tuple[str, ...]
    duration_s: float
    load: float

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Verdict":
        """Return the verdict that a line of the session's file holds."""
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**plain)


def without_late(observed: Observed) -> Observed:
    """Return what was seen without faults that came when the job had ended."""
    ended = _last(observed.events, "job ended")
    end_s = float("inf") if ended is None else ended.elapsed_s
    return replace(observed, done=tuple(done for done in observed.done if done.at_s < end_s))


def judge(observed: Observed) -> Verdict:
    """Return the verdict on a run."""
    ended = _last(observed.events, "job ended")
    outcome = str(ended.values["outcome"]) if ended else ""
    is_done = outcome == "finished" and observed.exit_code == 0
    cause = str(ended.values.get("cause", "")) if ended else ""
    faults = [BY_NAME[done.fault] for done in observed.done]
    is_stopped_named = not is_done and any(cause.startswith(fault.causes) for fault in faults if fault.causes)
    num_restores = sum(event.kind == "generation started" for event in observed.events) - 1
    detection_s, step_s = _detection_s(observed), _step_s(observed)
    down_s = _down_s(observed)
    verdict = Verdict(
        number=observed.number,
        fault=observed.fault.name,
        folder=observed.folder,
        is_recovered=is_done,
        is_stopped_named=is_stopped_named,
        is_identical=observed.is_identical,
        intervals_lost=_intervals_lost(observed.events, loses_memory=any(fault.loses_memory for fault in faults)),
        has_missed_copies=_misses_copies(observed.events, _lost_nodes(observed.done)),
        num_restores=num_restores,
        num_needless=max(0, num_restores - sum(fault.may_restart for fault in faults)),
        is_slow=observed.fault.family == "slow",
        found=tuple(_is_found(done, observed.events) for done in observed.done if _must_be_named(done)),
        named=_named(observed, fatal=True),
        remarks=_named(observed, fatal=False),
        num_steps_before=_num_steps_before(observed),
        detection_s=detection_s,
        detection_steps=detection_s / step_s if detection_s is not None and step_s else None,
        down_s=down_s,
        recovery_steps=_recovery_steps(observed, step_s),
        step_s=step_s,
        leftovers=observed.leftovers,
        failures=(),
        injected=tuple(f"{done.fault} at {done.at_s:.2f} s {done.note}".rstrip() for done in observed.done),
        duration_s=round(observed.duration_s, 2),
        load=round(observed.load, 1),
    )
    return _with_failures(verdict, observed, outcome, cause)


def _with_failures(verdict: Verdict, observed: Observed, outcome: str, cause: str) -> Verdict:
    return replace(verdict, failures=tuple(_failures(verdict, observed, outcome, cause)))


def _failures(verdict: Verdict, observed: Observed, outcome: str, cause: str) -> Iterable[str]:
    if observed.exit_code is None:
        yield "hangs"
    elif not verdict.is_recovered and not verdict.is_stopped_named:
        yield f"ended as {outcome or 'nothing'} ({cause or 'no cause'}), exit code {observed.exit_code}"
    elif not verdict.is_recovered and not observed.fault.may_stop:
        yield f"stopped ({cause}), though it can go on"
    if verdict.is_recovered and not verdict.is_identical:
        yield "final parameters differ" if verdict.is_identical is False else "no final parameters"
    if verdict.is_recovered and observed.losses_differ_at is not None:
        yield f"loss of step {observed.losses_differ_at} differs"
    if verdict.intervals_lost > 1:
        yield f"{verdict.intervals_lost:.1f} intervals lost"
    if verdict.has_missed_copies:
        yield "went on from storage, not from the copies of the lost node"
    if not all(verdict.found):
        yield "guilty not named"
    if not all(verdict.named):
        yield "innocent named"
    if verdict.num_needless:
        yield f"restarted {verdict.num_restores} times, {verdict.num_needless} of them without need"
    if verdict.down_s is not None and verdict.down_s > DOWN_WITHIN_S:
        yield f"ranks down {verdict.down_s:.1f} s after the decision"
    if verdict.leftovers:
        yield f"left: {', '.join(verdict.leftovers[:4])}"
    if not observed.done:
        yield "no fault was injected"


def _intervals_lost(events: Sequence[Event], *, loses_memory: bool) -> float:
    """Return the most steps that were done and had to be done again, in intervals that the fault may cost.

    A rank's fault leaves the nodes' memory, and costs an interval of saves there. A node's, or damage in its memory,
    leaves copies, the newest of which may be on its way: two intervals.
    """
    interval = MEMORY_EVERY * (2 if loses_memory else 1)
    last_done, most = -1, 0.0
    for event in events:
        if event.kind == "training":
            most = max(most, (last_done + 1 - int(event.values["step"])) / interval)
        elif event.kind == "step":
            last_done = int(event.values["step"])
    return most


def _lost_nodes(done: Sequence[Done]) -> frozenset[str]:
    """Return the nodes of which one at least was lost, and with it what it had in memory."""
    return frozenset(node for one in done if BY_NAME[one.fault].truth in ("node", "link") for node in one.nodes)


def _misses_copies(events: Sequence[Event], lost: Collection[str]) -> bool:
    """Return whether a generation went on from an older state in storage, though a lost node's copies had time.

    A storage may have the newest save before its copies arrive; a journal that says they are late has counted them.
    """
    num_steps, last_done, is_late = 0, -1, False
    for event in events:
        if event.kind == "step":
            num_steps, last_done = num_steps + 1, int(event.values["step"])
        elif event.kind == "copies late":
            is_late |= event.values["node"] in lost
        elif event.kind == "training":
            is_old = last_done + 1 - int(event.values["step"]) > MEMORY_EVERY
            if lost and is_old and event.values.get("source") == "storage" and num_steps > COPIED_AFTER and not is_late:
                return True
            num_steps, is_late = 0, False
    return False


def _must_be_named(done: Done) -> bool:
    return BY_NAME[done.fault].truth != "none" and BY_NAME[done.fault].must_name


def _is_found(done: Done, events: Sequence[Event]) -> bool:
    return any(_is_right(event, done) for event in events if event.kind == "fault detected")


def _named(observed: Observed, *, fatal: bool) -> tuple[bool, ...]:
    """Return for each diagnosis, fatal or not, whether one of the injected faults is its cause."""
    events = [event for event in observed.events if event.kind == "fault detected" and is_fatal(event) == fatal]
    return tuple(any(_is_right(event, done) for done in observed.done) for event in events)


def _is_right(event: Event, done: Done) -> bool:
    """Return whether a diagnosis comes after an injection, and names its cause and its victim."""
    fault = BY_NAME[done.fault]
    if event.elapsed_s < done.at_s - 1.0 or event.values["cause"] not in fault.causes:
        return False
    ranks, nodes = set(event.values["ranks"]), set(event.values["nodes"])
    if fault.truth == "rank":
        return ranks == set(done.ranks)
    if fault.truth in ("node", "loader", "store"):
        return nodes == set(done.nodes) or (not nodes and not ranks)
    if fault.truth == "link":
        return nodes == set(done.nodes) or all(node in str(event.values["entity"]) for node in done.nodes)
    return True


def _detection_s(observed: Observed) -> float | None:
    """Return the time from the first fault with a guilty one to the first diagnosis after it."""
    first = next((done for done in observed.done if _must_be_named(done)), None)
    if first is None:
        return None
    found = [e.elapsed_s for e in observed.events if e.kind == "fault detected" and _is_right(e, first)]
    return max(0.0, found[0] - first.at_s) if found else None


def _num_steps_before(observed: Observed) -> int:
    at_s = min((done.at_s for done in observed.done), default=0.0)
    return sum(event.kind == "step" and event.elapsed_s < at_s for event in observed.events)


def _step_s(observed: Observed) -> float | None:
    """Return the median of the job's own steps, without each generation's first."""
    durations = [event.values["elapsed_ns"] / 1e9 for event in observed.events if event.kind == "step"]
    return median(durations[1:]) if len(durations) > 1 else None


def _down_s(observed: Observed) -> float | None:
    """Return the longest time from the decision to end all ranks to the last one's end, by the journal and as seen."""
    decided: float | None = None
    longest = [*observed.down_s]
    for event in observed.events:
        if is_fatal(event):
            decided = event.elapsed_s
        elif event.kind == "ranks down" and decided is not None:
            longest.append(event.elapsed_s - decided)
            decided = None
    return max(longest, default=None)


def _recovery_steps(observed: Observed, step_s: float | None) -> float | None:
    """Return the time from the first fault to the first step complete after the next restart, in step times."""
    if not observed.done or not step_s:
        return None
    at_s = observed.done[0].at_s
    started = [e for e in observed.events if e.kind == "generation started" and e.elapsed_s > at_s]
    if not started:
        return None
    steps = [e for e in observed.events if e.kind in ("training", "step") and e.elapsed_s > started[0].elapsed_s]
    return (steps[0].elapsed_s - at_s) / step_s if steps else None


def is_fatal(event: Event) -> bool:
    """Return whether an event is a diagnosis for which all ranks are ended."""
    return event.kind == "fault detected" and bool(event.values["is_fatal"])


def _last(events: Sequence[Event], kind: str) -> Event | None:
    return next((event for event in reversed(events) if event.kind == kind), None)
