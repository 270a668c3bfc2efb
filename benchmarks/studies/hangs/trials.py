"""One trial: a job, a fault, the formats it leaves, and whether the diagnosis names the fault."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.studies.hangs.faults import FAULTS, Planted, plant
from benchmarks.studies.hangs.formats import FIRST_PID, FORMATS, Case
from benchmarks.studies.hangs.halts import Fault, halt
from benchmarks.studies.hangs.jobs import make_programs
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.diagnosis import Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN
from fabrictune.observability.hangs.job import Job, join_evidence
from fabrictune.observability.hangs.reading import read_evidence

NUM_STEPS = 2
LAYOUTS: Mapping[int, ParallelLayout] = {
    16: ParallelLayout(tp=2, pp=2, dp=4),
    64: ParallelLayout(tp=4, pp=4, dp=4),
    128: ParallelLayout(tp=4, pp=4, dp=8, ep=2),
    256: ParallelLayout(tp=8, pp=4, dp=8),
    1024: ParallelLayout(tp=8, pp=8, dp=16, ep=4),
}
# What a hang can leave behind. Watchdog lines and completions alone do not tell all faults: they come with others.
MIXTURES: Sequence[tuple[str, ...]] = (
    ("dumps",),
    ("ras", "stacks"),
    ("dumps", "watchdog"),
    ("log", "stacks"),
    ("dumps", "ras", "log"),
    ("ras", "inspector", "dumps", "stacks"),
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A trial's result."""

    seed: int
    num_ranks: int
    formats: tuple[str, ...]
    planted: Planted | None  # None for a job without a fault
    diagnosis: Diagnosis | None
    named: tuple[int, ...]  # ranks
    elapsed_s: float

    @property
    def is_located(self) -> bool:
        """Whether exactly the guilty ranks are named, and none where there is no fault."""
        return self.named == (() if self.planted is None else self.planted.ranks)

    @property
    def is_found(self) -> bool:
        """Whether the guilty ranks are among at most four that are named."""
        return self.planted is not None and set(self.planted.ranks) <= set(self.named) and len(self.named) <= 4


def try_hang(seed: int, num_ranks: int, folder: Path, *, fault: str | None = None, axis: str | None = None,
             formats: tuple[str, ...] | None = None) -> Trial:  # fmt: skip
    """Plant a fault in a job, write what it leaves into a folder, and diagnose that."""
    planted, formats = write_hang(seed, num_ranks, folder, fault=fault, axis=axis, formats=formats)
    return _try(seed, num_ranks, planted, formats, folder)


def try_clean(seed: int, num_ranks: int, folder: Path, *, formats: tuple[str, ...] | None = None) -> Trial:
    """Diagnose a job that has ended all its requests, as one between two steps has."""
    formats = write_clean(seed, num_ranks, folder, formats=formats)
    return _try(seed, num_ranks, None, formats, folder)


def write_hang(seed: int, num_ranks: int, folder: Path, *, fault: str | None = None, axis: str | None = None,
               formats: tuple[str, ...] | None = None) -> tuple[Planted, tuple[str, ...]]:  # fmt: skip
    """Plant a fault in a job, write what it leaves into a folder, and return the fault and the formats."""
    random = Random(seed)
    programs = make_programs(LAYOUTS[num_ranks], num_steps=NUM_STEPS, seed=seed)
    planted = plant(fault or FAULTS[seed % len(FAULTS)], programs, random, axis=axis)
    formats = formats or random.choice([one for one in MIXTURES if _tells(one, planted)])
    _write(Case(halt=halt(programs, planted.fault), fault=planted.fault.name, ranks=planted.ranks), formats, folder)
    return planted, formats


def write_clean(seed: int, num_ranks: int, folder: Path, *,
                formats: tuple[str, ...] | None = None) -> tuple[str, ...]:  # fmt: skip
    """Write what a job without a fault leaves into a folder, and return the formats."""
    programs = make_programs(LAYOUTS[num_ranks], num_steps=NUM_STEPS, seed=seed)
    formats = formats or Random(seed).choice(MIXTURES)
    _write(Case(halt=halt(programs, Fault(name="none")), fault="none", ranks=()), formats, folder)
    return formats


def _tells(formats: tuple[str, ...], planted: Planted) -> bool:
    """Return whether a mixture can show a fault: completions and messages are in the recorder's dumps alone."""
    needs_dumps = planted.fault.name == "cut link" or (planted.fault.name == "missing request" and planted.axis == "pp")
    return not needs_dumps or "dumps" in formats


def _write(case: Case, formats: tuple[str, ...], folder: Path) -> None:
    for one in formats:
        FORMATS[one](case, folder)


def _try(seed: int, num_ranks: int, planted: Planted | None, formats: tuple[str, ...], folder: Path) -> Trial:
    began_s = time.perf_counter()
    job = join_evidence(read_evidence([folder]).evidence)
    diagnosis = diagnose(job)
    return Trial(
        seed=seed,
        num_ranks=num_ranks,
        formats=formats,
        planted=planted,
        diagnosis=diagnosis,
        named=ranks_named(diagnosis, job),
        elapsed_s=time.perf_counter() - began_s,
    )


def ranks_named(diagnosis: Diagnosis | None, job: Job) -> tuple[int, ...]:
    """Return the ranks that a diagnosis names; a process whose rank no source says has it in its number."""
    whos = [] if diagnosis is None else [job.processes[one] for one in diagnosis.processes]
    return tuple(sorted(who.pid - FIRST_PID if who.rank == UNKNOWN else who.rank for who in whos))
