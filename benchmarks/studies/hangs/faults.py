"""Faults that make a job stand still, each at a moment and on an axis drawn at random, and what must be named."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from benchmarks.studies.hangs.halts import Await, Fault, Issue, Key, Program
from fabrictune.foundation.traces import Operation

FAULTS = ("stopped rank", "killed rank", "stalled loader", "missing request", "mismatch", "cut link")


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fault, and the ranks that a diagnosis must name."""

    fault: Fault
    ranks: tuple[int, ...]
    axis: str


def plant(name: str, programs: Mapping[int, Program], random: Random, *, axis: str | None = None) -> Planted:
    """Return a fault of a kind at a request of an axis, in the later half of a rank's program."""
    while True:
        rank = random.choice(list(programs))
        program = programs[rank]
        half = len(program) // 2
        places = [
            place
            for place, step in enumerate(program)
            if place >= half and isinstance(step, Issue) and (axis is None or step.key[0].rstrip(">") == axis)
        ]
        if name == "missing request":
            places = [place for place in places if _is_awaited_alone(program, place)]
        if name in ("mismatch", "cut link"):
            places = [place for place in places if not _step(program, place).key[0].endswith(">")]
        if places:
            return _plant(name, programs, rank, random.choice(places))


def _plant(name: str, programs: Mapping[int, Program], rank: int, place: int) -> Planted:
    step = _step(programs[rank], place)
    axis = step.key[0].rstrip(">")
    if name == "mismatch":
        odd = replace(step, num_bytes=step.num_bytes // 2, operation=Operation.BROADCAST)
        return Planted(fault=Fault(name=name, rank=rank, action=place, change=odd), ranks=(rank,), axis=axis)
    if name == "cut link":
        number = _number(programs[rank], place)
        ends = (rank,)
        return Planted(fault=Fault(name=name, cut=(step.key, number), cut_ranks=ends), ranks=ends, axis=axis)
    return Planted(fault=Fault(name=name, rank=rank, action=place), ranks=(rank,), axis=axis)


def _step(program: Program, place: int) -> Issue:
    step = program[place]
    assert isinstance(step, Issue)
    return step


def _number(program: Program, place: int) -> int:
    key: Key = _step(program, place).key
    return sum(isinstance(step, Issue) and step.key == key for step in program[: place + 1])


def _is_awaited_alone(program: Program, place: int) -> bool:
    """Return whether a request is awaited at once, so that leaving it out shifts those behind it by one."""
    after = program[place + 1] if place + 1 < len(program) else None
    return isinstance(after, Await) and after.action == place
