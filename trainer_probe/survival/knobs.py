"""Knobs: what each would gain if it were changed to a stated alternative, and by a tenth.

Gains are differences of effective time at the same draws of the failure rates, so that what all variants share does not
widen them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.units import PS_PER_S, format_duration
from fabrictune.trainer_probe.survival.draws import ends_90
from fabrictune.trainer_probe.survival.failures import FailureCause, FailureTable
from fabrictune.trainer_probe.survival.job import MemoryTier, SurvivalJob
from fabrictune.trainer_probe.survival.model import make_model, with_interval
from fabrictune.trainer_probe.survival.renewal import time_shares

STALL_S = 0.04  # ByteRobust, Table 8: 70B on 2,048 GPUs
START_S = 65.0  # ByteRobust, Table 7: hot update on 16,384 GPUs
ENOUGH = 0.01  # of failures without a free spare
MAX_SPARES = 4096
NUM_CAUSES = 3  # whose rate is a knob
TENTH = 0.9

Plan = tuple[SurvivalJob, FailureTable]


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One thing of a job, and an alternative to it."""

    name: str
    now: str
    then: str
    why: str  # where the alternative is from
    changed: Plan
    tenth: Plan | None = None  # with a tenth less of it; None where it has no amount


@dataclass(frozen=True, kw_only=True)
class KnobGain:
    """What a knob gains."""

    knob: Knob
    effective: float
    gain: float  # of all time, at the expected rates
    low: float  # 90 % of the rates' draws
    high: float
    tenth_gain: float | None  # by a tenth less of it


def knob_gains(
    job: SurvivalJob, table: FailureTable, rates_CD: FloatArray, best_s: float, others: Sequence[Knob] = ()
) -> list[KnobGain]:
    """Return what each knob gains, the most first; `others` are knobs beside those of this module."""
    base_D = _effective(job, table, rates_CD, table)
    gains = []
    for knob in (*knobs(job, table, rates_CD, best_s), *others):
        effective_D = _effective(*knob.changed, rates_CD, table)
        change_D = effective_D - base_D
        tenth = None if knob.tenth is None else _effective(*knob.tenth, rates_CD[:, :1], table)[0] - base_D[0]
        low, high = ends_90(change_D)
        gains.append(
            KnobGain(
                knob=knob,
                effective=float(effective_D[0]),
                gain=float(change_D[0]),
                low=min(float(low), float(change_D[0])),
                high=max(float(high), float(change_D[0])),
                tenth_gain=None if tenth is None else float(tenth),
            )
        )
    return sorted(gains, key=lambda gain: -gain.gain)


def knobs(job: SurvivalJob, table: FailureTable, rates_CD: FloatArray, best_s: float) -> Iterator[Knob]:
    """Yield the knobs of a job that can be changed."""
    yield Knob(
        name="interval between saves",
        now=_time(job.segment_s),
        then=_time(best_s),
        why="the best",
        changed=(with_interval(job, best_s), table),
        tenth=(with_interval(job, TENTH * job.segment_s), table),
    )
    yield from _stalls(job, table)
    if job.memory is None:
        memory = MemoryTier(every_s=max(job.step_s, min(60.0, job.save_every_s)))
        then = f"every {_time(memory.every_s)}, copied to another node"
        changed = (replace(job, memory=memory), table)
        yield Knob(name="checkpoints in memory", now="none", then=then, why="ByteRobust, section 8", changed=changed)
    elif not job.memory.is_copied:
        changed = (replace(job, memory=replace(job.memory, is_copied=True)), table)
        yield Knob(name="checkpoints in memory", now="one node", then="copied to another", why="", changed=changed)
    yield from _phases(job, table)
    yield from _spares(job, table, rates_CD)
    yield from _causes(job, table, rates_CD)


def _stalls(job: SurvivalJob, table: FailureTable) -> Iterator[Knob]:
    def stalled(stall_s: float) -> Plan:
        if job.memory is None:
            return replace(job, stall_s=stall_s), table
        return replace(job, memory=replace(job.memory, stall_s=stall_s)), table

    now = job.save_stall_s
    least = STALL_S if now > STALL_S else now / 2
    why = "ByteRobust, Table 8" if now > STALL_S else "half"
    yield _amount("blocking time of a save", now, least, why, stalled)
    yield _amount("until storage has a save", job.write_s, job.write_s / 2, "half", _field(job, table, "write_s"))
    if (memory := job.memory) is not None:
        yield _amount(
            "until memory has a save",
            memory.copy_s,
            memory.copy_s / 2,
            "half",
            lambda copy_s: (replace(job, memory=replace(memory, copy_s=copy_s)), table),
        )


def _phases(job: SurvivalJob, table: FailureTable) -> Iterator[Knob]:
    yield _amount("detection", job.detect_s, job.detect_s / 2, "half", _times(job, table, "detect_s"))
    yield _amount("diagnosis", job.diagnose_s, job.diagnose_s / 2, "half", _times(job, table, "diagnose_s"))
    yield _amount("ranks down", job.down_s, job.down_s / 2, "half", _field(job, table, "down_s"))
    is_long = job.start_s > START_S
    then, why = (START_S, "restart in place: ByteRobust, Table 7") if is_long else (job.start_s / 2, "half")
    yield _amount("start", job.start_s, then, why, _field(job, table, "start_s"))
    yield _amount("restore from storage", job.restore_s, job.restore_s / 2, "half", _field(job, table, "restore_s"))
    if job.slowdown_fraction:
        half = replace(job, slowdown_fraction=job.slowdown_fraction / 2)
        tenth = replace(job, slowdown_fraction=TENTH * job.slowdown_fraction)
        now, then_text = (f"{100 * each.slowdown_fraction:.2g} %" for each in (job, half))
        name = "slower steps by saves"
        yield Knob(name=name, now=now, then=then_text, why="half", changed=(half, table), tenth=(tenth, table))


def _spares(job: SurvivalJob, table: FailureTable, rates_CD: FloatArray) -> Iterator[Knob]:
    yield _amount("waiting for a node", job.node_s, job.node_s / 2, "half", _field(job, table, "node_s"))
    load = _load(job, table, rates_CD[:, :1])
    loss, count = 1.0, 0
    while loss > ENOUGH and count < MAX_SPARES:
        count += 1
        loss = load * loss / (count + load * loss)
    if count > job.spares and job.spare_s < job.node_s:
        yield Knob(
            name="warm spares",
            now=str(job.spares),
            then=str(count),
            why=f"one is free for {1 - loss:.0%} of failures",
            changed=(replace(job, spares=count), table),
        )


def _load(job: SurvivalJob, table: FailureTable, rates_C1: FloatArray) -> float:
    """Return the mean number of nodes in repair."""
    model = make_model(job, table, rates_C1)
    return float(model.rates_CD[model.loses_node_C].sum() * job.repair_s)


def _causes(job: SurvivalJob, table: FailureTable, rates_CD: FloatArray) -> Iterator[Knob]:
    """Yield the causes with the highest rates, each half as frequent."""
    failures = [number for number, cause in enumerate(table.causes) if not cause.is_planned]
    for number in sorted(failures, key=lambda number: -rates_CD[number, 0])[:NUM_CAUSES]:
        cause = table.causes[number]
        yield Knob(
            name=f"failures: {cause.name}",
            now="as counted",
            then="half as many",
            why="half",
            changed=(job, _less(table, cause, 0.5)),
            tenth=(job, _less(table, cause, TENTH)),
        )


def _less(table: FailureTable, less: FailureCause, factor: float) -> FailureTable:
    """Return the table with a cause seen over a longer time: its rates are divided by the change of exposure."""
    longer = replace(less, exposure_days=less.exposure_days / factor)
    return replace(table, causes=tuple(longer if cause is less else cause for cause in table.causes))


def _effective(job: SurvivalJob, changed: FailureTable, rates_CD: FloatArray, table: FailureTable) -> FloatArray:
    """Return the effective time at the same draws, of rates that a changed exposure scales."""
    scale_C = [old.exposure_days / new.exposure_days for old, new in zip(table.causes, changed.causes, strict=True)]
    return time_shares(make_model(job, changed, rates_CD * np.array(scale_C)[:, None])).effective_D


def _amount(name: str, now_s: float, then_s: float, why: str, change: Callable[[float], Plan]) -> Knob:
    return Knob(
        name=name,
        now=_time(now_s),
        then=_time(then_s),
        why=why,
        changed=change(then_s),
        tenth=change(TENTH * now_s),
    )


def _field(job: SurvivalJob, table: FailureTable, name: str) -> Callable[[float], Plan]:
    return lambda value: (replace(job, **{name: value}), table)  # type: ignore[arg-type]


def _times(job: SurvivalJob, table: FailureTable, name: str) -> Callable[[float], Plan]:
    """Return a change of a time that causes may have of their own: these change by the same factor."""

    def changed(value: float) -> Plan:
        factor = value / now if (now := getattr(job, name)) else 1.0
        causes = tuple(
            cause if (own := getattr(cause, name)) is None else replace(cause, **{name: own * factor})
            for cause in table.causes
        )
        return replace(job, **{name: value}), replace(table, causes=causes)  # type: ignore[arg-type]

    return changed


def _time(time_s: float) -> str:
    return format_duration(time_s * PS_PER_S) if time_s else "0"
