"""One run: a job is started, disturbed as planned, watched to its end, and judged."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos import damage, tensors
from tests.chaos.clock import JumpingClock
from tests.chaos.data_shard import write_shard
from tests.chaos.injectors import Scene, inject
from tests.chaos.job import Job
from tests.chaos.journal import POLL_S, Follower
from tests.chaos.plan import Injection, Plan
from tests.chaos.processes import end_all, marked, wait_for_none
from tests.chaos.slow_filesystem import SlowStorage
from tests.chaos.small_disk import SmallDisk
from tests.chaos.undisturbed import Undisturbed
from tests.chaos.verdicts import Done, Observed
from tests.patience import crowding, slowness

PATIENCE_S = 150.0  # for a run, on a quiet machine
MOST_SCALE = 4.0
GONE_WITHIN_S = 5.0
DISK_BYTES = 24 * 2**20


def observe(plan: Plan, folder: Path, undisturbed: Undisturbed | None) -> Observed:
    """Run a job with a plan's faults in a new folder; returns what was seen. The folder keeps the evidence."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started_s = time.monotonic()
    with _scene(plan, folder) as scene:
        done = _watch(scene, plan, started_s)
        leftovers = _leftovers(scene.job)
        scene.follower.poll()
        final = damage.newest_checkpoint(_storage(scene))
        is_identical = None
        if undisturbed is not None and final is not None and damage.step_of(final) == undisturbed.final_step:
            is_identical = tensors.digest(final) == undisturbed.digest
        return Observed(
            number=plan.number,
            folder=folder.name,
            fault=plan.fault,
            done=tuple(done),
            events=tuple(scene.follower.events),
            exit_code=scene.job.exit_code,
            is_identical=is_identical,
            losses_differ_at=undisturbed.first_difference(scene.follower.events) if undisturbed else None,
            down_s=tuple(scene.down_s),
            leftovers=leftovers,
            duration_s=time.monotonic() - started_s,
            load=crowding(),
        )


def _watch(scene: Scene, plan: Plan, started_s: float) -> list[Done]:
    """Start the job and inject each fault at its moment; returns when the job is over or our patience is."""
    scene.job.start()
    waiting, done = list(plan.injections), list[Done]()
    limit_s = PATIENCE_S * min(slowness(), MOST_SCALE)
    while not scene.job.poll() and time.monotonic() - started_s < limit_s:
        scene.watch()
        scene.do_what_is_due()
        is_over = scene.follower.last("job ended") is not None
        if waiting and not is_over and _is_moment(scene, waiting[0], done):
            _wait_for_part(scene, waiting[0])
            carried_out = inject(scene, waiting.pop(0))
            done += [carried_out] if carried_out else []
        time.sleep(POLL_S)
    scene.follower.poll()
    return done


def _is_moment(scene: Scene, injection: Injection, done: list[Done]) -> bool:
    """Return whether the step, save or recovery in which a fault comes has begun."""
    events = scene.follower.events
    if injection.moment == "start":
        return any(event.kind == "generation started" for event in events)
    if injection.moment == "recovery":
        return bool(done) and sum(event.kind == "generation started" for event in events) > len(done)
    if injection.moment == "save":
        return any(event.kind == "step" and event.values["step"] >= injection.step for event in events) and _is_saving(
            scene
        )
    return any(event.kind == "step" and event.values["step"] >= injection.step for event in events)


def _is_saving(scene: Scene) -> bool:
    """Return whether a checkpoint is being written: its folder is there and its manifest is not."""
    return any(
        folder.is_dir() and damage.step_of(folder) >= 0 and not (folder / "manifest.json").exists()
        for folder in (scene.job.folder / "storage").rglob("step-*")
    )


def _wait_for_part(scene: Scene, injection: Injection) -> None:
    """Wait for a random part of a step's time, or of a start's."""
    if injection.moment == "save":
        return
    steps = [event.values["elapsed_ns"] / 1e9 for event in scene.follower.events if event.kind == "step"]
    usual_s = steps[-1] if steps else 1.0
    if injection.moment in ("start", "recovery"):
        usual_s = max(1.0, 2 * usual_s)
    time.sleep(min(injection.fraction * usual_s, 5.0))


def _leftovers(job: Job) -> tuple[str, ...]:
    """Return the processes, sockets and memory that are left of a job that is over; ends the processes."""
    left: list[str] = []
    if job.exit_code is not None:
        left += [f"process {p.pid} {' '.join(p.words[-6:])[:100]}" for p in wait_for_none(job.mark, GONE_WITHIN_S)]
    had_none = not marked(job.mark)
    end_all(job.mark)
    places = job.close()
    return (*left, *(places if had_none else ()))


@contextmanager
def _scene(plan: Plan, folder: Path) -> Iterator[Scene]:
    mark = f"{os.getpid()}-{plan.number}"
    names = {injection.fault for injection in plan.injections}
    tokens = folder / "tokens.bin"
    write_shard(tokens)
    environment: dict[str, str] = {}
    job = Job(folder=folder, mark=mark, tokens=tokens, is_network=plan.fault.is_network, num_spares=plan.num_spares)
    scene = Scene(job=job, follower=Follower(job.run))
    with scene.ends:
        scene.ends.callback(job.close)
        scene.ends.callback(scene.follower.close)
        scene.ends.callback(end_all, mark)
        if names & {"clock forward", "clock back"}:
            scene.clock = JumpingClock(folder)
            environment |= scene.clock.environment()
        if "slow disk" in names:
            scene.slow_storage = SlowStorage(folder)
            job.storage = f"slow://{folder}/storage"
            environment |= scene.slow_storage.environment()
        if "full disk" in names:
            scene.disk = SmallDisk(folder / "storage", DISK_BYTES)
            scene.ends.callback(scene.disk.close)
        job.environment = environment
        job.prepare()
        yield scene


def _storage(scene: Scene) -> Path:
    return scene.job.folder / "storage"
