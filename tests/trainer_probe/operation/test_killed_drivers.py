"""A driver that is killed again and again: no record is lost, none is there twice, and the parameters are the same.

Kills are counted in lines of the driver, one an event: after so many since it was started, in the start of the nodes,
between a record and what it announces, in a save, in a recovery. Ranks go on meanwhile; executors keep what they have
to say until the journal has it.
"""

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from fabrictune.trainer_probe.operation.events import Event
from tests.chaos import damage, tensors
from tests.trainer_probe.operation.operated import Operated, operated

pytestmark = pytest.mark.slow

MAX_LINES = 12  # of a driver before its kill
SAVE_EVERY = 40
RANK_KILLS = 8  # one rank is killed as well in so many kills of the driver


def start_again(job: Operated, num_starts: int) -> None:
    """Start the driver, and return when it has taken up the job: it tells of the starts before as well."""
    job.start()
    for _ in range(num_starts):
        job.until(lambda line: "driver started" in line)


def kill_driver(job: Operated, num_lines: int) -> None:
    """Kill the driver after so many more events."""
    for _ in range(num_lines):
        job.until(lambda line: True)
    job.kill_driver()


def steps_of(events: list[Event]) -> dict[tuple[int, int], dict[str, Any]]:
    """Return the metrics of each step by generation and number; none may be there twice."""
    steps: dict[tuple[int, int], dict[str, Any]] = {}
    for event in events:
        if event.kind == "step":
            place = event.values["generation"], event.values["step"]
            assert place not in steps, f"recorded twice: {place}"
            steps[place] = {name: event.values[name] for name in ("loss", "gradient_norm")}
    return steps


def lost_steps(events: list[Event]) -> list[tuple[int, int]]:
    """Return the steps that lack in the journal: between a generation's first and last, and before the next's first."""
    first = {e.values["generation"]: e.values["step"] for e in events if e.kind == "training"}
    done = steps_of(events)
    last = {generation: max(step for own, step in done if own == generation) for generation in first}
    return [
        (generation, step)
        for generation in first
        for step in range(first[generation], last[generation] + 1)
        if (generation, step) not in done
    ]


def saves_of(events: list[Event], generation: int) -> list[int]:
    """Return the steps of a generation's saves, done or skipped, in order; none may be there twice."""
    kinds = ("saved", "save failed")
    return [e.values["step"] for e in events if e.kind in kinds and e.values["generation"] == generation]


@pytest.mark.parametrize(("num_kills", "num_steps"), [(3, 400), pytest.param(20, 6000, marks=pytest.mark.sweep)])
def test_no_record_is_lost_however_often_the_driver_is_killed(num_kills: int, num_steps: int, tmp_path: Path) -> None:
    """Each step once a generation, with the metrics and at the end the parameters of a job that nobody killed."""
    for name in ("quiet", "killed"):
        (tmp_path / name).mkdir()
    arguments = ("--nodes", "2", "--slots", "1", "--save-every", str(SAVE_EVERY), "--checkpoint")
    with operated(tmp_path / "quiet", *arguments, str(tmp_path / "quiet" / "saves"), num_steps=num_steps) as job:
        assert job.finish() == 0, job.output
        undisturbed = steps_of(job.events())
    chance = random.Random(num_kills)
    num_rank_kills = 0
    with operated(tmp_path / "killed", *arguments, str(tmp_path / "killed" / "saves"), num_steps=num_steps) as job:
        for kill in range(1, num_kills + 1):
            if kill % RANK_KILLS == 0:
                job.until(lambda line: " step " in line)
                os.kill(job.pid_of_rank(1), signal.SIGKILL)
                num_rank_kills += 1
                job.until(lambda line: "fault detected" in line)
                kill_driver(job, chance.randrange(4))
            else:
                kill_driver(job, chance.randrange(MAX_LINES))
            start_again(job, kill + 1)
        assert job.finish() == 0, job.output
        events = job.events()
    assert sum(event.kind == "driver started" for event in events) == num_kills + 1
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert lost_steps(events) == []
    steps = steps_of(events)
    assert {step for _, step in steps} == set(range(num_steps))
    assert all(metrics == undisturbed[1, step] for (_, step), metrics in steps.items())
    last = max(generation for generation, _ in steps)
    first = next(e.values["step"] for e in events if e.kind == "training" and e.values["generation"] == last)
    due = [step for step in range(first + 1, num_steps + 1) if step % SAVE_EVERY == 0]
    assert saves_of(events, last) == due
    assert sum(event.kind == "generation started" for event in events) > num_rank_kills
    finals = [damage.newest_checkpoint(tmp_path / name / "saves") for name in ("quiet", "killed")]
    assert finals[0] is not None
    assert finals[1] is not None
    assert damage.step_of(finals[0]) == damage.step_of(finals[1]) == num_steps
    assert tensors.digest(finals[0]) == tensors.digest(finals[1])
