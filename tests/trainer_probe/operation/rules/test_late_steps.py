"""A slow rank has the last steps to itself; one that a busy machine holds up for a moment does not."""

from collections.abc import Callable

import pytest

from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.observations import Snapshot
from fabrictune.trainer_probe.operation.rules import RuleSettings, diagnose
from fabrictune.trainer_probe.operation.rules.late_steps import MAX_BEFORE, NUM_RECENT, LateStepsCounter
from tests.trainer_probe.operation.rules.test_diagnosis import make_snapshot

NUM_LOOKS = 4  # of a step
# Groups 0: (0, 1), 1: (2, 3), 2: (0, 2), 3: (1, 3): who waits for which, so that all waits end at one rank.
GROUP_OF = {(0, 1): 0, (2, 3): 1, (0, 2): 2, (1, 3): 3}
CHAINS = {
    0: ((1, 0), (2, 0), (3, 1)),
    1: ((0, 1), (3, 1), (2, 3)),
    2: ((3, 2), (0, 2), (1, 0)),
    3: ((2, 3), (1, 3), (0, 1)),
}


def look(step: int, late: int | None) -> Snapshot:
    """Return four ranks in a step, of which three wait in the end for one, or none waits."""
    ranks: dict[int, dict[str, object]] = {rank: {"step": step} for rank in range(4)}
    for waiting, blocker in CHAINS[late] if late is not None else ():
        group = GROUP_OF[min(waiting, blocker), max(waiting, blocker)]
        issued = {0: 5, 1: 5, 2: 5, 3: 5}
        ranks[waiting] |= {"waits_for": (group, 5), "issued": issued | {group: 6}}
    return make_snapshot(ranks)


def named(late_in: Callable[[int, int], int | None], num_steps: int = 40) -> list[tuple[int, Diagnosis]]:
    """Return in which steps which rank is named; `late_in` gives the late rank by step and look."""
    counter, found = LateStepsCounter(), list[tuple[int, Diagnosis]]()
    for step in range(num_steps):
        for number in range(NUM_LOOKS):
            snapshot = look(step, late_in(step, number))
            late_steps = counter.take(snapshot)
            values = {**vars(snapshot), "late_steps": late_steps}
            if diagnosis := diagnose(Snapshot(**values), RuleSettings()):
                found.append((step, diagnosis))
    return found


def test_a_rank_that_becomes_slow_is_named_after_six_steps() -> None:
    """Six of the last eight are three quarters; it is late in three looks of four, and nobody before."""
    found = named(lambda step, number: 2 if step >= 20 and number else None)
    step, diagnosis = found[0]
    assert step == 26
    assert (diagnosis.cause, diagnosis.ranks, diagnosis.nodes) == ("rank slow", (2,), ("b",))
    assert not diagnosis.is_fatal
    assert diagnosis.evidence == ("others waited for rank 2 in 6 of the last 8 steps, and in 0 of the 18 before",)
    assert {other.ranks for _, other in found} == {(2,)}


SILENT: dict[str, Callable[[int, int], int | None]] = {
    "a busy machine holds up one rank after another": lambda step, number: (7 * step + step // 3) % 4,
    "one rank in half of all steps": lambda step, number: 1 if step % 2 else (step // 2) % 4,
    "a stage with more work, from the first step on": lambda step, number: 3,
    "a moment": lambda step, number: 2 if 20 <= step < 25 else None,
    "one look of each step": lambda step, number: 2 if step >= 20 and number == NUM_LOOKS - 1 else None,
    "two ranks alike": lambda step, number: number % 2 if step >= 20 else None,
    "nobody": lambda step, number: None,
}


@pytest.mark.parametrize("name", SILENT)
def test_nobody_is_named(name: str) -> None:
    """What is not one rank's own, for long, is no remark."""
    assert named(SILENT[name]) == []


def test_a_rank_that_is_stopped_in_a_request_of_all_is_late() -> None:
    """All wait for requests that all have issued; three sleep, and one does not get on with its part."""
    waits: dict[str, object] = {"waits_for": (0, 5), "issued": {0: 6, 1: 6, 2: 6, 3: 6}}
    for state in ("T", "R"):
        counter = LateStepsCounter()
        for step in range(40):
            ranks = {rank: {"step": step, **waits} for rank in range(4)}
            if step >= 20:
                ranks[3] |= {"process_state": state}
            for _ in range(NUM_LOOKS):
                late_steps = counter.take(make_snapshot(ranks))
        assert (late_steps.rank, late_steps.num_late) == (3, 8), state


def test_another_generation_begins_anew() -> None:
    """Its steps are no measure for the next one's, whose ranks are elsewhere."""
    counter = LateStepsCounter()
    for step in range(40):
        counter.take(look(step, 2 if step >= 20 else None))
    values = {**vars(look(40, 2)), "generation": 2}
    assert counter.take(Snapshot(**values)).rank == -1


def test_what_is_kept_is_bounded() -> None:
    """A job of weeks keeps as many steps as are looked at."""
    counter = LateStepsCounter()
    for step in range(200):
        for _ in range(NUM_LOOKS):
            late_steps = counter.take(look(step, None if step < 190 else 1))
    assert late_steps.num_steps + late_steps.num_steps_before == NUM_RECENT + MAX_BEFORE
