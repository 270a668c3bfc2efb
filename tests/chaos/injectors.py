"""How each fault is injected into a running job. One function a kind, in one table."""

import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.chaos import damage
from tests.chaos.clock import JumpingClock
from tests.chaos.data_shard import ID_BYTES
from tests.chaos.job import Job
from tests.chaos.journal import Follower
from tests.chaos.plan import NODES, Injection
from tests.chaos.processes import Found, is_alive, send
from tests.chaos.slow_filesystem import SlowStorage
from tests.chaos.slowness import MEANS, usable_means
from tests.chaos.small_disk import SmallDisk
from tests.chaos.verdicts import Done, is_fatal
from tests.chaos.victims import Crew, crew

FIND_WITHIN_S = 20.0
WATCHDOG_S = 3.0  # after which a service manager kills a driver that is stopped
DISK_FULL_S, SLOW_S = 4.0, 1.5
HOURS_S = (1 * 3600.0, 9 * 3600.0)


@dataclass(kw_only=True)
class Scene:
    """A run while it goes on, with what its faults act upon."""

    job: Job
    follower: Follower
    clock: JumpingClock | None = None
    slow_storage: SlowStorage | None = None
    disk: SmallDisk | None = None
    later: list[tuple[float, Callable[[], object]]] = field(default_factory=list)  # what to do at a moment
    ends: ExitStack = field(default_factory=ExitStack)  # what to undo at the end of the run
    doomed: list[tuple[float, tuple[Found, ...]]] = field(
        default_factory=list
    )  # the moment of a fatal diagnosis, and the ranks
    num_watched: int = 0  # events
    down_s: list[float] = field(default_factory=list)  # from there to the end of the last rank

    def crew(self) -> Crew:
        """Return who is alive."""
        return crew(self.job.mark)

    def now_s(self) -> float:
        """Return the time on the job's clock."""
        return time.monotonic() - self.follower.started_s

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something later, while the run is watched."""
        self.later.append((time.monotonic() + seconds, action))

    def watch(self) -> None:
        """Read the journal; note the ranks that a fatal diagnosis ends, and when the last of them is gone."""
        self.follower.poll()
        new = self.follower.events[self.num_watched :]
        self.num_watched += len(new)
        if any(map(is_fatal, new)):
            self.doomed.append((time.monotonic(), tuple(self.crew().ranks.values())))
        for entry in list(self.doomed):
            if not any(map(is_alive, entry[1])):
                self.down_s.append(time.monotonic() - entry[0])
                self.doomed.remove(entry)

    def do_what_is_due(self) -> None:
        """Do what was put off until now."""
        due = [entry for entry in self.later if entry[0] <= time.monotonic()]
        self.later = [entry for entry in self.later if entry not in due]
        for _, action in due:
            action()


Injector = Callable[[Scene, Injection], Done | None]


def inject(scene: Scene, injection: Injection) -> Done | None:
    """Inject a fault now; returns what was done, or None where its victim could not be found in time."""
    return INJECTORS[injection.fault](scene, injection)


def _signal_rank(number: signal.Signals, scene: Scene, injection: Injection) -> Done | None:
    victim = _find(scene, lambda people: people.ranks.get(injection.rank))
    return _send(scene, injection, victim, number, ranks=(injection.rank,))


def _signal_executor(number: signal.Signals, scene: Scene, injection: Injection) -> Done | None:
    node = _node(scene, injection)
    return _send(scene, injection, _find(scene, lambda people: people.executors.get(node)), number, nodes=(node,))


def _signal_loader(number: signal.Signals, scene: Scene, injection: Injection) -> Done | None:
    node = _node(scene, injection)
    return _send(scene, injection, _find(scene, lambda people: people.loaders.get(node)), number, nodes=(node,))


def _signal_store(number: signal.Signals, scene: Scene, injection: Injection) -> Done | None:
    people = scene.crew()
    node = people.node_of.get(people.store.pid) if people.store else None
    store = _find(scene, lambda people: people.store)
    return _send(scene, injection, store, number, nodes=(node,) if node else ())


def _kill_driver(scene: Scene, injection: Injection) -> Done | None:
    return _send(scene, injection, _find(scene, lambda people: people.driver), signal.SIGKILL)


def _stop_driver(scene: Scene, injection: Injection) -> Done | None:
    """Stop the driver; it goes on by itself, or a service manager's watchdog kills it."""
    driver = _find(scene, lambda people: people.driver)
    done = _send(scene, injection, driver, signal.SIGSTOP)
    if driver is not None:
        end = signal.SIGCONT if injection.seed % 2 else signal.SIGKILL
        scene.after(WATCHDOG_S, partial(send, scene.job.mark, driver.pid, end))
        scene.after(WATCHDOG_S, partial(send, scene.job.mark, driver.pid, signal.SIGCONT))
    return done


def _cut_link(scene: Scene, injection: Injection) -> Done:
    ends = _nodes(scene)[:2]
    at_s = scene.now_s()
    scene.job.network.cut(*ends)
    return Done(fault=injection.fault, at_s=at_s, nodes=tuple(ends))


def _cut_off_node(scene: Scene, injection: Injection) -> Done:
    node, at_s = _node(scene, injection), scene.now_s()
    scene.job.network.cut_off(node)
    return Done(fault=injection.fault, at_s=at_s, nodes=(node,))


def _fill_disk(scene: Scene, injection: Injection) -> Done:
    assert scene.disk is not None, "prepared"
    scene.disk.fill()
    is_freed = injection.seed % 2
    if is_freed:
        scene.after(DISK_FULL_S, scene.disk.free)
    return Done(fault=injection.fault, at_s=scene.now_s(), note="freed later" if is_freed else "for good")


def _slow_disk(scene: Scene, injection: Injection) -> Done:
    assert scene.slow_storage is not None, "prepared"
    scene.slow_storage.set_delay(SLOW_S)
    return Done(fault=injection.fault, at_s=scene.now_s(), note=f"{SLOW_S} s a file")


def _damage_checkpoint(act: Callable[[Path, random.Random], object], scene: Scene, injection: Injection) -> Done | None:
    """Damage a file of the newest checkpoint, then kill a rank, so that it is wanted."""
    chance = random.Random(injection.seed)
    is_memory = injection.fault.endswith("memory")
    top = scene.job.folder / ("shm" if is_memory else "storage")
    newest = damage.newest_checkpoint(top, is_memory=is_memory)
    files = damage.tensor_files(newest) if newest else ()
    if newest is None or not files:
        return None
    victim = chance.choice(files)
    act(victim, chance)
    done = _signal_rank(signal.SIGKILL, scene, injection)
    place = victim.relative_to(scene.job.folder)
    return done and Done(fault=injection.fault, at_s=done.at_s, ranks=done.ranks, note=f"{place}")


def _damage_data(act: Callable[[Path], object], scene: Scene, injection: Injection) -> Done:
    act(scene.job.tokens)
    return Done(fault=injection.fault, at_s=scene.now_s())


def _jump(sign: int, scene: Scene, injection: Injection) -> Done:
    assert scene.clock is not None, "prepared"
    by_s = sign * random.Random(injection.seed).uniform(*HOURS_S)
    scene.clock.jump(by_s)
    return Done(fault=injection.fault, at_s=scene.now_s(), note=f"by {by_s / 3600:+.1f} hours")


def _slow_rank(scene: Scene, injection: Injection) -> Done | None:
    victim = _find(scene, lambda people: people.ranks.get(injection.rank))
    if victim is None:
        return None
    means = random.Random(injection.seed).choice(usable_means())
    scene.ends.enter_context(MEANS[means](victim.pid, scene.job.mark))
    return Done(fault=injection.fault, at_s=scene.now_s(), ranks=(injection.rank,), note=means)


def _find(scene: Scene, choose: Callable[[Crew], Found | None]) -> Found | None:
    deadline = time.monotonic() + FIND_WITHIN_S
    while time.monotonic() < deadline and not scene.job.poll():
        if (found := choose(scene.crew())) is not None:
            return found
        scene.follower.poll()
        time.sleep(0.02)
    return None


def _send(
    scene: Scene,
    injection: Injection,
    victim: Found | None,
    number: signal.Signals,
    *,
    ranks: tuple[int, ...] = (),
    nodes: tuple[str, ...] = (),
) -> Done | None:
    at_s = scene.now_s()
    if victim is None or not send(scene.job.mark, victim.pid, number):
        return None
    return Done(fault=injection.fault, at_s=at_s, ranks=ranks, nodes=nodes, note=f"pid {victim.pid}")


def _nodes(scene: Scene) -> list[str]:
    """Return the nodes of the generation that runs."""
    started = scene.follower.last("generation started")
    return list(started.values["nodes"]) if started else list(NODES[:2])


def _node(scene: Scene, injection: Injection) -> str:
    return _nodes(scene)[injection.node_index]


INJECTORS: Mapping[str, Injector] = {
    "kill rank": partial(_signal_rank, signal.SIGKILL),
    "kill rank 0": partial(_signal_rank, signal.SIGKILL),
    "stop rank": partial(_signal_rank, signal.SIGSTOP),
    "stop rank 0": partial(_signal_rank, signal.SIGSTOP),
    "kill executor": partial(_signal_executor, signal.SIGKILL),
    "stop executor": partial(_signal_executor, signal.SIGSTOP),
    "kill driver": _kill_driver,
    "stop driver": _stop_driver,
    "kill loader": partial(_signal_loader, signal.SIGKILL),
    "stop loader": partial(_signal_loader, signal.SIGSTOP),
    "kill store": partial(_signal_store, signal.SIGKILL),
    "stop store": partial(_signal_store, signal.SIGSTOP),
    "cut link": _cut_link,
    "cut off node": _cut_off_node,
    "full disk": _fill_disk,
    "slow disk": _slow_disk,
    "torn checkpoint": partial(_damage_checkpoint, damage.tear),
    "flipped checkpoint": partial(_damage_checkpoint, damage.flip_byte),
    "torn memory": partial(_damage_checkpoint, damage.tear),
    "flipped memory": partial(_damage_checkpoint, damage.flip_byte),
    "foreign ids in data": partial(_damage_data, partial(damage.put_foreign_id, num_bytes=ID_BYTES)),
    "flipped data": partial(_damage_data, damage.flip_shard),
    "clock forward": partial(_jump, 1),
    "clock back": partial(_jump, -1),
    "slow rank": _slow_rank,
}
