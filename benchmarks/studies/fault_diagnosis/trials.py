"""Trials: a job runs for some steps, then a fault or a trouble comes, and what a driver sees is diagnosed."""

from dataclasses import dataclass

from benchmarks.studies.fault_diagnosis.faults import FAULTS, TROUBLES, Truth
from benchmarks.studies.fault_diagnosis.job import TICK_S, Job
from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.rules import RuleSettings, diagnose

LOOK_TICKS = 4  # a driver looks every 0.2 s
SETTINGS = RuleSettings()


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one fault, or of one trouble."""

    name: str
    seed: int
    truth: Truth | None  # None of a healthy job
    diagnosis: Diagnosis | None  # the first that ends the generation
    after_s: float  # from the fault to it, or to the end of the trial
    after_steps: float  # of the job's own step
    slow: tuple[str, ...] = ()  # ranks that were named slow

    @property
    def is_right(self) -> bool:
        """Whether cause and entity are those of the fault; in a healthy job, whether nothing was ended."""
        if self.truth is None or self.diagnosis is None:
            return self.truth is None and self.diagnosis is None
        return self.diagnosis.cause in self.truth.causes and self.diagnosis.entity in self.truth.entities


def try_fault(name: str, seed: int) -> Trial:
    """Return what is diagnosed after a fault at a random moment."""
    job = _start(seed)
    truth = FAULTS[name](job)
    return _watch(job, name, seed, truth, limit_s=60.0 + 160.0 * job.step_s)


def try_trouble(name: str, seed: int) -> Trial:
    """Return what is diagnosed of a job that is healthy but has a trouble."""
    job = _start(seed)
    TROUBLES[name](job)
    return _watch(job, name, seed, None, limit_s=40.0 * job.step_s)


def _start(seed: int) -> Job:
    job = Job(seed, num_nodes=2 if seed % 2 else 4, step_s=(0.5, 1.0, 2.0)[seed % 3])
    steps = 4 + job.random.randrange(3)
    while job.step < steps:
        job.tick()
    for _ in range(job.random.randrange(1, max(2, int(job.step_s / TICK_S)))):
        job.tick()
    return job


def _watch(job: Job, name: str, seed: int, truth: Truth | None, limit_s: float) -> Trial:
    began_s, slow = job.now_s, set()
    step_s = sorted(job.steps_s[1:])[len(job.steps_s[1:]) // 2]
    diagnosis = None
    while diagnosis is None and job.now_s < began_s + limit_s:
        for _ in range(LOOK_TICKS):
            job.tick()
        found = diagnose(job.snapshot(), SETTINGS)
        if found is not None and found.is_fatal:
            diagnosis = found
        elif found is not None:
            slow.add(found.entity)
    after_s = job.now_s - began_s
    return Trial(
        name=name,
        seed=seed,
        truth=truth,
        diagnosis=diagnosis,
        after_s=after_s,
        after_steps=after_s / step_s,
        slow=tuple(sorted(slow)),
    )
