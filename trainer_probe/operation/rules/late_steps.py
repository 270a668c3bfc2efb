"""Ranks that others wait for, step after step: what tells a slow rank from one that the machine held up for a moment.

At a look a rank is late if all others sleep in a wait and it does not: it works, waits for a processor, or is stopped,
also in the midst of a request that all have issued. Or, where several are at work, if at least half of the ranks wait,
in the end, for it alone. A step is the rank's that is late in most of the looks that find one. On a busy machine steps
go around among the ranks; a slow rank has nearly all of the last ones, and had no more than its part before. Stages of
a pipeline differ in their work, so that the part before is the rank's own and not one in so many.

Left out: a rank that is slow from a job's first step on; `fabrictune train stragglers` compares ranks with one another.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from fabrictune.foundation.waits import Wait, find_roots
from fabrictune.trainer_probe.operation.observations import LateSteps, RankStatus, Snapshot
from fabrictune.trainer_probe.operation.rules.waits import build_waits

NUM_RECENT, MIN_BEFORE, MAX_BEFORE = 8, 4, 56  # steps
MIN_LOOKS = 2  # of a step, in which a rank is late
MIN_SHARE = 0.5  # of a step's looks that find a late rank
ASLEEP = "S"  # in /proc/PID/stat


class LateStepsCounter:
    """The late ranks of a generation's last steps."""

    def __init__(self) -> None:
        self._generation = -1
        self._step = -1
        self._looks: Counter[int | None] = Counter()  # in the step that runs, by late rank
        self._steps = deque[int | None](maxlen=NUM_RECENT + MAX_BEFORE)  # late rank, None where none is

    def take(self, snapshot: Snapshot) -> LateSteps:
        """Take a look at all ranks; returns whose steps the last ones were."""
        step, late = _look(snapshot)
        if snapshot.generation != self._generation:
            self._generation, self._step = snapshot.generation, step
            self._looks.clear()
            self._steps.clear()
        if step > self._step:
            self._steps.append(_of_step(self._looks))
            self._looks.clear()
            self._step = step
        self._looks[late] += 1
        return _summary(tuple(self._steps))


def _look(snapshot: Snapshot) -> tuple[int, int | None]:
    """Return the step that runs, and the one rank for which at least half of all ranks wait."""
    heartbeats = [view.heartbeat for view in snapshot.nodes if view.heartbeat is not None]
    ranks = {status.rank: status for heartbeat in heartbeats for status in heartbeat.ranks}
    step = max((status.step for status in ranks.values()), default=-1)
    return step, _late_rank(ranks, build_waits(ranks, snapshot.groups, len(snapshot.node_of_rank)))


def _late_rank(ranks: Mapping[int, RankStatus], waits: Mapping[int, Wait]) -> int | None:
    awake = [rank for rank, status in ranks.items() if rank not in waits or status.process_state != ASLEEP]
    roots = [rank for rank in find_roots(waits, waits) if rank not in waits]
    if len(ranks) > 1 and len(awake) == 1:
        late = awake[0]
    elif 2 * len(waits) >= len(ranks) and len(roots) == 1:
        late = roots[0]
    else:
        return None
    return late if late in ranks and ranks[late].section == "step" else None


def _of_step(looks: Mapping[int | None, int]) -> int | None:
    """Return the rank that is late in most of a step's looks that find one, None where none is."""
    found = {rank: num for rank, num in looks.items() if rank is not None}
    num_found = sum(found.values())
    return next((rank for rank, num in found.items() if num >= MIN_LOOKS and num > MIN_SHARE * num_found), None)


def _summary(steps: Sequence[int | None]) -> LateSteps:
    """Return the rank with most of the last steps, and its part of them and of those before."""
    recent, before = steps[-NUM_RECENT:], steps[:-NUM_RECENT]
    counted = Counter(rank for rank in recent if rank is not None)
    if len(before) < MIN_BEFORE or not counted:
        return LateSteps()
    rank, num_recent = max(counted.items(), key=lambda entry: (entry[1], -entry[0]))
    return LateSteps(
        rank=rank,
        num_late=num_recent,
        num_steps=len(recent),
        num_late_before=sum(other == rank for other in before),
        num_steps_before=len(before),
    )
