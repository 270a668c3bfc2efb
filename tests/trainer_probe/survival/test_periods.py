"""A job's time, cut by its journal."""

from functools import partial
from time import process_time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.events import KINDS, Event
from fabrictune.trainer_probe.survival.effective import EffectiveTime, effective_time
from fabrictune.trainer_probe.survival.job_time import DOWN, KEPT, PARTS, PRODUCTIVE, UNKNOWN
from fabrictune.trainer_probe.survival.periods import cut_periods
from tests.trainer_probe.survival.journals import ONE_FAULT, journal, step

S = 1_000_000_000


def parts_s(events: list[Event]) -> dict[str, float]:
    """Return the parts that are not empty, in seconds."""
    return {part: time / S for part, time in effective_time(cut_periods(lambda: events)).parts_ns.items() if time}


def test_each_second_of_a_job_with_one_fault_has_its_part() -> None:
    """141 s: 50 of kept steps; steps 2 and 3 were done twice, and 6 s of step 4 ended in the fault."""
    assert parts_s(journal(*ONE_FAULT)) == {
        "kept steps": 50.0,
        "recomputed steps": 26.0,
        "checkpoint stalls": 2.0,
        "overhead": 1.0,
        "detection": 17.0,
        "diagnosis and decision": 1.0,
        "ranks down": 4.0,
        "waiting for nodes": 10.0,
        "start": 19.0,
        "restore": 11.0,
    }


def test_an_outage_has_all_that_it_cost() -> None:
    """17 + 1 + 4 + 5 s, start and restore 20 s, and the steps that were done again."""
    time = effective_time(cut_periods(lambda: journal(*ONE_FAULT)))
    (outage,) = time.outages
    assert (outage.outage.cause, outage.outage.entity, outage.lost_steps) == ("rank killed", "rank 3", 2)
    assert outage.total_ns == 73 * S
    assert (time.num_steps, time.num_recomputed, time.median_step_ns) == (5, 2, 10 * S)
    assert time.by_iterations_fraction == time.effective_fraction == 50 / 141


def test_steps_of_which_a_driver_heard_late_keep_their_time() -> None:
    """A driver that was down for 40 s hears of four steps at once: none of it is lost."""
    rows = [row for row in ONE_FAULT if row[0] <= 25.0]
    late = [step(65.0, 0, number) for number in (1, 2, 3, 4)]
    driver = (64.0, "driver started", {"pid": 2, "continues": True})
    parts = parts_s(journal(*rows, driver, *late, (65.0, "job ended", {"outcome": "done"})))
    assert parts["kept steps"] == 50.0
    assert "overhead" not in parts


def test_what_a_journal_lacks_is_named_and_never_guessed_to_be_work() -> None:
    """A generation that ended without an event: unknown; a job that goes on: counted up to its last event."""
    rows = [row for row in ONE_FAULT if row[1] not in ("fault detected", "decision", "ranks down", "job ended")]
    time = cut_periods(lambda: journal(*rows))
    parts = {part: ns / S for part, ns in effective_time(time).parts_ns.items()}
    assert parts["unknown"] == 33.0  # from the last step at 57 s to the next generation at 90 s
    assert parts["kept steps"] == 50.0
    assert time.gaps == {
        "generations that ended without an event": 1,
        "the job has not ended: its time is counted up to its last event": 1,
    }


def test_a_fault_that_is_not_fatal_costs_nothing() -> None:
    """A slow storage is told of and decided on; the steps go on."""
    rows = [row for row in ONE_FAULT if row[0] <= 35.0]
    fault = {"generation": 0, "cause": "storage slow", "entity": "storage x", "quiet_s": 1.0, "is_fatal": False}
    more = (
        (40.0, "fault detected", fault),
        (41.0, "decision", {"generation": 0, "action": "go on"}),
        step(45.0, 0, 2),
        (45.0, "job ended", {"outcome": "done"}),
    )
    time = effective_time(cut_periods(lambda: journal(*rows, *more)))
    assert time.parts_ns[KEPT] == 30 * S
    assert time.outages == ()


def test_ranks_that_finish_go_down_without_a_fault() -> None:
    """The end of a job is no outage; the same before another generation is one, of an unknown cause."""
    rows = [row for row in ONE_FAULT if row[0] <= 57.0]
    down = (60.0, "ranks down", {"generation": 0, "elapsed_s": 1.0, "stacks": []})
    finished = effective_time(cut_periods(partial(journal, *rows, down, (60.5, "job ended", {"outcome": "finished"}))))
    assert finished.outages == ()
    assert finished.parts_ns[UNKNOWN] == 0
    assert finished.parts_ns[DOWN] == S
    again = (65.0, "generation started", {"generation": 1, "first_step": None})
    time = cut_periods(partial(journal, *rows, down, again, (80.0, "training", {"generation": 1, "step": 3})))
    result = effective_time(time)
    assert [outage.outage.cause for outage in result.outages] == ["unknown"]
    assert result.parts_ns[UNKNOWN] == 2 * S
    assert result.num_recomputed == 1  # step 3: the first of the next generation, as its training says


def test_steps_that_the_journal_leaves_out_are_counted_and_named() -> None:
    """Each tenth step told: ten steps of the same length."""
    rows = [row for row in ONE_FAULT if row[0] <= 25.0]
    events = journal(*rows, step(125.0, 0, 10), (125.0, "job ended", {}))
    time = cut_periods(lambda: events)
    result = effective_time(time)
    assert (result.num_steps, result.parts_ns[KEPT]) == (11, 110 * S)
    assert time.gaps == {"steps without an event, taken to be as long as the next": 9}


def test_no_journal_is_no_time() -> None:
    """An empty journal has no periods and no division by zero."""
    result = effective_time(cut_periods(list))
    assert (result.total_ns, result.effective_fraction, result.by_iterations_fraction) == (0, 0.0, 0.0)
    assert len(result.windows.end_ns_W) == 0


def test_a_long_journal_takes_time_in_proportion() -> None:
    """Steps that all claim more time than there was, and saves that no overhead holds: no search goes back far."""
    rows = [step(0.01 * number, 0, number, seconds=1.0) for number in range(1, 60_000)]
    saves = [(600.0, "saved", {"generation": 0, "step": number, "blocked_ns": S}) for number in range(1000)]
    events = journal((0.0, "generation started", {"generation": 0, "first_step": 1}), *rows, *saves)
    begun = process_time()
    result = effective_time(cut_periods(lambda: events))
    assert result.num_steps == 59_999
    assert result.parts_ns[KEPT] == result.total_ns
    assert process_time() - begun < scaled(20)


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "generation": st.integers(-1, 4),
        "first_step": st.integers(-1, 12),
        "step": st.integers(-1, 12),
        "elapsed_ns": st.integers(-1, 20) | st.just(5 * S) | st.just(2.0e9) | st.just("soon"),
        "blocked_ns": st.integers(0, 3 * S),
        "restore_s": st.floats(allow_nan=True, allow_infinity=True),
        "quiet_s": st.floats(-1, 50),
        "is_fatal": st.booleans(),
        "action": st.sampled_from(["go on", "restart", "stop"]),
    },
)
EVENTS = st.lists(st.tuples(st.floats(0, 100), st.sampled_from(sorted(KINDS)), VALUES), max_size=40)


def check_sums(result: EffectiveTime) -> None:
    """Assert that parts and windows sum to the whole, and that nothing is negative or above it."""
    assert sum(result.parts_ns.values()) == result.total_ns
    assert all(time >= 0 for time in result.parts_ns.values())
    for part in PARTS:
        windows = result.windows.parts_ns[part]
        assert windows.sum() == result.parts_ns[part]
        assert (windows >= 0).all()
    assert sum(outage.total_ns for outage in result.outages) <= result.total_ns
    assert ((result.windows.sliding_W >= 0) & (result.windows.sliding_W <= 1)).all()
    if len(result.windows.end_ns_W):
        assert result.windows.cumulative_W[-1] == result.effective_fraction


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.booleans())
def test_the_parts_of_any_journal_are_its_whole(rows: list[tuple[float, str, dict[str, Any]]], in_order: bool) -> None:
    """Events of any kind, in any order, with values missing or absurd: to the nanosecond, periods without gaps."""
    events = journal(*(sorted(rows, key=lambda row: row[0]) if in_order else rows))
    time = cut_periods(lambda: events)
    for before, after in zip(time.periods, time.periods[1:], strict=False):
        assert before.end_ns == after.begin_ns
    assert PRODUCTIVE == (KEPT,)
    check_sums(effective_time(time))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.floats(0, 30)), min_size=1, max_size=6), st.data())
def test_a_driver_that_is_down_changes_no_kept_step(lives: list[tuple[int, int, float]], data: st.DataObject) -> None:
    """Generations of some steps that lose some; the same journal with its steps told late has the same kept time."""
    rows, clock, first = _generations(lives)
    told = journal(*rows)
    late = [(data.draw(st.floats(0, 5)) if row[1] == "step" else 0.0, row) for row in rows]
    delayed, moved = [], 0.0
    for delay, row in late:
        moved = max(moved, row[0] + delay)
        delayed.append((moved, row[1], row[2]))
    results = [effective_time(cut_periods(partial(journal, *order))) for order in (rows, delayed)]
    assert results[0].parts_ns[KEPT] == first * 10 * S
    assert abs(results[1].parts_ns[KEPT] - results[0].parts_ns[KEPT]) <= 2 * len(rows)  # of rounding
    assert results[0].num_steps == results[1].num_steps == first
    assert len(told) == len(rows)
    assert clock > 0
    for result in results:
        check_sums(result)


def _generations(lives: list[tuple[int, int, float]]) -> tuple[list[tuple[float, str, dict[str, Any]]], float, int]:
    """Return the rows of generations with (steps, steps that are lost, seconds down), the time, and the kept steps."""
    rows: list[tuple[float, str, dict[str, Any]]] = [(0.0, "job started", {"num_ranks": 2})]
    clock, first = 1.0, 0
    for generation, (steps, lost, down_s) in enumerate(lives):
        rows.append((clock, "generation started", {"generation": generation, "first_step": first}))
        clock += 15.0
        rows.append((clock, "training", {"generation": generation, "step": first, "restore_s": 2.0}))
        for number in range(first, first + steps):
            clock += 10.0 if number > first else 0.0
            rows.append(step(clock, generation, number))
        clock += 7.0 + down_s
        fault = {"generation": generation, "cause": "node lost", "entity": "node a", "quiet_s": 1.0 + down_s}
        rows.append((clock, "fault detected", fault))
        rows.append((clock + 6, "decision", {"generation": generation, "action": "restart"}))
        rows.append((clock + 7, "ranks down", {"generation": generation}))
        clock += 12.0
        is_last = generation == len(lives) - 1
        first += steps if is_last else max(0, steps - lost)
    return rows, clock, first
