"""Periods of a job, cut by the events of its journal: each nanosecond from the first event to the last has one part.

A step's event says when the step ended and how long it took; what lies before it and is not a step is a stall of a
checkpoint as far as saves say so, else overhead. A driver that was down hears of steps late and all at once: their time
is then taken back from what had looked like overhead or detection. A fault's onset is its first sign, so that detection
is what its event says; from there a decision, the ranks' end and the next generation cut the time.

A step is kept if no later generation starts at or before it. What a journal lacks is counted in `gaps`, and time that
nothing explains is `unknown`.

Source: MegaScale (NSDI'24), section 4; ByteRobust (SOSP'25), section 8.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fabrictune.foundation.units import NS_PER_S
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.survival.job_time import (
    CODE,
    DECISION,
    DETECTION,
    DOWN,
    KEPT,
    OVERHEAD,
    RECOMPUTED,
    RESTORE,
    STALL,
    START,
    STOPPED,
    UNKNOWN,
    WAITING,
    JobTime,
    Outage,
    Period,
)

_STEP = "step"  # until it is known whether it is kept
_RETAKEN = (OVERHEAD, DETECTION, DECISION, UNKNOWN)


def cut_periods(read: Callable[[], Iterable[Event]]) -> JobTime:
    """Return the periods of a job's events, which `read` returns in the journal's order; it is called twice."""
    cutter = _Cutter(_stalls(read()))
    for event in read():
        cutter.take(event)
    return cutter.finish()


def _stalls(events: Iterable[Event]) -> dict[int, list[tuple[int, int]]]:
    """Return step and blocked time of saves by generation, the last first: their events come when they are complete."""
    blocked: Counter[tuple[int, int]] = Counter()
    for event in events:
        if event.kind == "saved":
            key = (_whole(event.values, "generation", -1), _whole(event.values, "step", -1))
            blocked[key] = max(blocked[key], _whole(event.values, "blocked_ns", 0))  # each tier tells of one stall
    stalls: dict[int, list[tuple[int, int]]] = {}
    for (generation, step), blocked_ns in sorted(blocked.items(), reverse=True):
        stalls.setdefault(generation, []).append((step, blocked_ns))
    return stalls


@dataclass
class _Cutter:
    """The job's state while its events are read."""

    stalls: dict[int, list[tuple[int, int]]]
    state: str = WAITING
    begin_ns: int | None = None
    now_ns: int = 0
    generation: int = -1
    last_step: int | None = None  # that ended in this generation
    owed_stall_ns: int = 0
    owed_restore_ns: int = 0
    outage: int = -1
    ranks: int = 0
    is_finished: bool = False
    periods: list[Period] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    first_steps: list[tuple[int, int]] = field(default_factory=list)  # generation, its first step
    gaps: Counter[str] = field(default_factory=Counter)
    has_first: bool = False  # whether this generation's first step is known
    quiet_ns: int | None = None  # before ranks went down without a fault: unknown, unless the job had finished
    is_untold: bool = False  # whether its steps are known, and "training" is not
    marks: dict[tuple[str, ...], int] = field(default_factory=dict)  # period from which on some of these parts may be
    mark: int = 0  # number of the first period of this generation

    def take(self, event: Event) -> None:
        """Cut the time up to an event, and change the state by it."""
        time_ns = round(event.elapsed_s * NS_PER_S)
        if self.begin_ns is None:
            self.begin_ns = self.now_ns = time_ns
        if time_ns < self.now_ns:
            self.gaps["events whose time runs backwards"] += 1
            time_ns = self.now_ns
        if event.kind != "step":
            self._restore()
        handler = _HANDLERS.get(event.kind)
        if handler is not None:
            handler(self, event.values, time_ns)

    def finish(self) -> JobTime:
        """Return the periods, with steps that were done again told from those that were kept."""
        self._restore()
        self._tell()
        if not self.is_finished:
            self.gaps["the job has not ended: its time is counted up to its last event"] += 1
        return JobTime(
            periods=tuple(_judged(self.periods, self.first_steps, self.outages)),
            outages=tuple(self.outages),
            gaps=dict(self.gaps),
            is_finished=self.is_finished,
            num_ranks=self.ranks,
        )

    def started(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "job started"."""
        self.ranks = _whole(values, "num_ranks", 0)

    def generation_started(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "generation started": until now nodes were waited for, or nobody knows."""
        self._tell()
        if self.quiet_ns is not None:
            self.gaps["generations that ended without a fault or decision"] += 1
            self._begin_outage("unknown", "", self.now_ns)
            self.quiet_ns = None
        if self.state in (OVERHEAD, START):
            self.gaps["generations that ended without an event"] += 1
            self._begin_outage("unknown", "", self.now_ns)
            self.state = UNKNOWN
        self._cut(time_ns, self.state)
        self.generation = _whole(values, "generation", self.generation + 1)
        self.has_first = False
        self._begin_at(_whole(values, "first_step", -1))
        self.last_step, self.owed_stall_ns, self.state = None, 0, START
        self.is_finished = False
        self.mark, self.marks = len(self.periods), {}

    def training(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "training": the first step is complete; what it took is taken back when its own event comes."""
        if not self._is_current(values) or not (self.state == START or self.is_untold):
            return
        self._begin_at(_whole(values, "step", -1))
        if "restore_s" not in values:
            self.gaps["restores without a duration"] += 1
        if self.state == START:
            self._cut(time_ns, START)
            self.state, self.outage = OVERHEAD, -1
        self.owed_restore_ns = round(max(0.0, _number(values, "restore_s")) * NS_PER_S)
        self.is_untold = False

    def step(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "step": it ended now, or was heard of now."""
        if not self._is_current(values):
            self.gaps["steps of a generation that is over"] += 1
            return
        number = _whole(values, "step", -1)
        if number < 0 or (self.last_step is not None and number <= self.last_step):
            self.gaps["steps without a number, or told twice"] += 1
            return
        if self.generation < 0:
            self.generation = _whole(values, "generation", -1)
        self._begin_at(number)
        count = self._count(number)
        elapsed_ns = count * max(0, _whole(values, "elapsed_ns", 0))
        since_ns = time_ns - self.now_ns
        self._cut(time_ns - min(elapsed_ns, since_ns), self.state)
        if self.state == START or (self.state == WAITING and not self.outages):
            self.is_untold = self.state == START
            self.state, self.outage = OVERHEAD, -1
        self._cut(time_ns, _STEP, step=number, num_steps=count)
        if elapsed_ns > since_ns and not self._take_back(elapsed_ns - since_ns, _STEP, number):
            self.gaps["steps longer than the time there was for them"] += 1
        if since_ns == 0 or not elapsed_ns:
            self._count_step(number, count, time_ns)
        self._restore()
        self._owe(number)
        self.last_step = number

    def fault(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "fault detected": since its first sign it was being detected."""
        if not self._is_current(values) or self.state not in (OVERHEAD, START) or values.get("is_fatal") is False:
            return
        if "quiet_s" not in values:
            self.gaps["faults without their first sign"] += 1
            onset_ns = self.now_ns
        else:
            onset_ns = max(self.now_ns, time_ns - round(max(0.0, _number(values, "quiet_s")) * NS_PER_S))
        before = START if self.state == START else RECOMPUTED  # of a step that never ended
        self._begin_outage(str(values.get("cause", "unknown")), str(values.get("entity", "")), onset_ns)
        self._cut(onset_ns, before)
        self._cut(time_ns, DETECTION)
        self.state = DECISION

    def decision(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "decision"; after one to go on the job trains as before."""
        if self.state == OVERHEAD:
            if values.get("action") == "go on":
                return
            self._begin_outage("decided", "", self.now_ns)
        self._cut(time_ns, self.state if self.state != OVERHEAD else DECISION)
        if values.get("action") == "go on" and self.state == DECISION:
            self.state, self.outage = OVERHEAD, -1
        elif self.state in (OVERHEAD, DECISION, START):
            self.state = DOWN

    def ranks_down(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "ranks down": from now on nodes are waited for, unless the job is over."""
        if self.state in (OVERHEAD, START):
            lasted_ns = round(max(0.0, _number(values, "elapsed_s")) * NS_PER_S)
            self.quiet_ns = max(0, time_ns - lasted_ns - self.now_ns)
            self._cut(self.now_ns + self.quiet_ns, UNKNOWN)
            self._cut(time_ns, DOWN)
        else:
            self._cut(time_ns, DOWN if self.state in (DOWN, DECISION) else UNKNOWN)
        self.state = WAITING

    def code_changed(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "code changed"."""
        if self.state in (WAITING, DOWN):
            self._cut(time_ns, CODE)

    def ended(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take "job ended"; ranks that went down before, without a fault, had finished."""
        if self.quiet_ns is not None:
            self._taken(self.quiet_ns, OVERHEAD, -1, (UNKNOWN,))
            self.quiet_ns = None
        self._cut(time_ns, self.state)
        self.state, self.is_finished = STOPPED, True

    def other(self, values: Mapping[str, Any], time_ns: int) -> None:
        """Take an event that changes no state: the time up to it has the part that it had."""
        if self.state != OVERHEAD:
            self._cut(time_ns, self.state)

    def _is_current(self, values: Mapping[str, Any]) -> bool:
        return self.generation < 0 or _whole(values, "generation", self.generation) == self.generation

    def _begin_at(self, first: int) -> None:
        """Keep the generation's first step; where its start does not know it, its first event does."""
        if first >= 0 and not self.has_first:
            self.first_steps.append((self.generation, first))
            self.has_first = True

    def _restore(self) -> None:
        """Take what restoring took out of the time before the first step, whose own was taken first."""
        self._taken(self.owed_restore_ns, RESTORE, -1, (START,), self.outage)
        self.owed_restore_ns = 0

    def _tell(self) -> None:
        """Count a generation whose steps are known and whose start of training is not."""
        self.gaps.update({"generations that train without an event": 1} if self.is_untold else {})
        self.is_untold = False

    def _count(self, number: int) -> int:
        first = next((step for generation, step in reversed(self.first_steps) if generation == self.generation), number)
        before = self.last_step if self.last_step is not None else min(first, number) - 1
        if missing := number - before - 1:
            self.gaps["steps without an event, taken to be as long as the next"] += missing
        return max(1, number - before)

    def _owe(self, number: int) -> None:
        """Take the stalls of saves up to this step out of overhead, as far as there is any; the rest waits."""
        due = self.stalls.get(self.generation, [])
        while due and due[-1][0] <= number:
            self.owed_stall_ns += due.pop()[1]
        if self.owed_stall_ns:
            before = self.owed_stall_ns
            taken = self._taken(before, STALL, number, (OVERHEAD,))
            self.owed_stall_ns = before - taken

    def _take_back(self, duration_ns: int, part: str, step: int) -> bool:
        return self._taken(duration_ns, part, step, (*_RETAKEN, START)) == duration_ns

    def _taken(self, duration_ns: int, part: str, step: int, parts: tuple[str, ...], outage: int | None = None) -> int:
        """Give time of this generation, the last first, another part; returns how much there was.

        It belongs to no outage, unless it did before and `outage` is given.
        """
        left_ns, at = duration_ns, len(self.periods) - 1
        first = self.marks.get(parts, self.mark)
        while left_ns > 0 and at >= first:
            period = self.periods[at]
            if period.part in parts:
                cut_ns = min(left_ns, period.duration_ns)
                middle_ns = period.end_ns - cut_ns
                own = replace(period, begin_ns=middle_ns, part=part, step=step, num_steps=0)
                own = replace(own, outage=-1) if outage is None else own
                rest = [replace(period, end_ns=middle_ns)] if middle_ns > period.begin_ns else []
                self.periods[at : at + 1] = [*rest, own]
                left_ns -= cut_ns
            at -= 1
        if left_ns:
            self.marks[parts] = len(self.periods)
        return duration_ns - left_ns

    def _count_step(self, number: int, count: int, time_ns: int) -> None:
        """Keep the number of steps that an event without time tells of: a period of no length."""
        self.periods.append(
            Period(
                begin_ns=time_ns, end_ns=time_ns, part=_STEP, generation=self.generation, step=number, num_steps=count
            )
        )

    def _begin_outage(self, cause: str, entity: str, time_ns: int) -> None:
        self.outage = len(self.outages)
        self.outages.append(
            Outage(number=self.outage, begin_ns=time_ns, generation=self.generation, cause=cause, entity=entity)
        )

    def _cut(self, end_ns: int, part: str, *, step: int = -1, num_steps: int = 0) -> None:
        if end_ns <= self.now_ns:
            return
        self.periods.append(
            Period(
                begin_ns=self.now_ns,
                end_ns=end_ns,
                part=part,
                generation=self.generation,
                step=step,
                num_steps=num_steps,
                outage=self.outage if part not in (_STEP, OVERHEAD) else -1,
            )
        )
        self.now_ns = end_ns


_HANDLERS = {
    "job started": _Cutter.started,
    "generation started": _Cutter.generation_started,
    "training": _Cutter.training,
    "step": _Cutter.step,
    "fault detected": _Cutter.fault,
    "decision": _Cutter.decision,
    "ranks down": _Cutter.ranks_down,
    "code changed": _Cutter.code_changed,
    "job ended": _Cutter.ended,
    **dict.fromkeys(
        (
            "driver started",
            "node joined",
            "node refused",
            "node not started",
            "node not ended",
            "node evicted",
            "node ended",
            "saved",
            "save failed",
            "copies late",
            "change asked",
        ),
        _Cutter.other,
    ),
}


def _judged(
    periods: Sequence[Period], first_steps: Sequence[tuple[int, int]], outages: Sequence[Outage]
) -> Iterator[Period]:
    """Yield the periods with steps as kept, or as recomputed by the first generation that starts at or before them.

    Those of no length and no step are left out.
    """
    later: dict[int, list[tuple[int, int]]] = {}  # of each generation: those after it that start lower than all before
    lowest: list[tuple[int, int]] = []
    for generation, first in reversed(first_steps):
        later[generation] = lowest
        lowest = [(generation, first), *(entry for entry in lowest if entry[1] < first)]
    before = {generation: -1 for generation, _ in first_steps}
    for generation in before:
        ended = [outage.number for outage in outages if outage.generation < generation]
        before[generation] = ended[-1] if ended else -1
    for period in periods:
        if period.part == _STEP:
            undone = next((one for one, first in later.get(period.generation, lowest) if first <= period.step), None)
            if undone is None:
                yield replace(period, part=KEPT)
            else:
                yield replace(period, part=RECOMPUTED, outage=before[undone])
        elif period.duration_ns:
            yield period


def _whole(values: Mapping[str, Any], key: str, missing: int) -> int:
    value = values.get(key, missing)
    return int(value) if isinstance(value, int | float) and value == value and abs(value) < 2**62 else missing


def _number(values: Mapping[str, Any], key: str) -> float:
    value = values.get(key, 0.0)
    return float(value) if isinstance(value, int | float) and value == value and abs(value) < 1e15 else 0.0
