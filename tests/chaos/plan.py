"""What is done to each run: a fault, its moment and victim, sometimes a second one; all from a seed and a number."""

import random
from dataclasses import dataclass
from typing import Literal

from tests.chaos import clock, network, small_disk

NUM_RANKS, NUM_STEPS = 8, 20
LOADED_STEPS = 4  # that a loader has read and hands out although it is stopped: nobody misses it before
SAVE_EVERY, MEMORY_EVERY = 4, 2
NODES = tuple(f"node{number}" for number in range(5))  # two that work, a spare, and who comes for those that are lost

Truth = Literal["rank", "node", "link", "storage", "data", "loader", "store", "none"]
Moment = Literal["step", "start", "save", "recovery"]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A kind of fault: what a job may make of it."""

    name: str
    family: str
    truth: Truth  # what is guilty; none where nobody is
    causes: tuple[str, ...] = ()  # any of which names it
    must_name: bool = (
        True  # the guilty one; not a storage whose saves take less than a minute, nor data that are not read
    )
    may_stop: bool = False  # where it makes going on impossible
    may_restart: bool = True  # ranks may be ended for it
    is_network: bool = False
    weight: int = 1  # runs in a round of all faults
    loses_memory: bool = False  # what a node has in memory is damaged or gone with it; its peer has copies
    needs: str = ""  # what is lacking here, "" where nothing is


_RANK, _NODE = ("rank killed",), ("executor lost", "node lost")
FAULTS: tuple[Fault, ...] = (
    Fault(name="kill rank", family="kill", truth="rank", causes=_RANK, weight=2),
    Fault(name="kill rank 0", family="kill", truth="rank", causes=_RANK),
    Fault(name="stop rank", family="stop", truth="rank", causes=("rank stopped",), weight=2),
    Fault(name="stop rank 0", family="stop", truth="rank", causes=("rank stopped",)),
    Fault(name="kill executor", family="kill", truth="node", causes=_NODE, loses_memory=True),
    Fault(name="stop executor", family="stop", truth="node", causes=_NODE, loses_memory=True),
    Fault(name="kill driver", family="driver", truth="none", may_restart=False),
    Fault(name="stop driver", family="driver", truth="none", may_restart=False),
    Fault(name="kill loader", family="kill", truth="loader", causes=("loader failed",)),
    Fault(name="stop loader", family="stop", truth="loader", causes=("loader failed",)),
    Fault(name="kill store", family="kill", truth="store", causes=("store lost",)),
    Fault(name="stop store", family="stop", truth="store", causes=("store lost",)),
    Fault(
        name="cut link",
        family="network",
        truth="link",
        causes=("link cut",),
        is_network=True,
        loses_memory=True,
        needs=network.lack(),
    ),
    Fault(
        name="cut off node",
        family="network",
        truth="node",
        causes=(*_NODE, "link cut"),
        loses_memory=True,
        is_network=True,
        needs=network.lack(),
    ),
    Fault(
        name="full disk",
        family="disk",
        truth="storage",
        causes=("storage full",),
        may_stop=True,
        may_restart=False,
        needs=small_disk.lack(),
    ),
    Fault(
        name="slow disk", family="disk", truth="storage", causes=("storage slow",), must_name=False, may_restart=False
    ),
    Fault(name="torn checkpoint", family="damage", truth="rank", causes=_RANK),
    Fault(name="flipped checkpoint", family="damage", truth="rank", causes=_RANK),
    Fault(name="torn memory", family="damage", truth="rank", causes=_RANK, loses_memory=True),
    Fault(name="flipped memory", family="damage", truth="rank", causes=_RANK, loses_memory=True),
    Fault(name="kill in a save", family="second", truth="rank", causes=_RANK),
    Fault(name="kill in a recovery", family="second", truth="rank", causes=_RANK),
    Fault(name="stop in a recovery", family="second", truth="rank", causes=("rank stopped", *_RANK)),
    Fault(
        name="foreign ids in data",
        family="data",
        truth="data",
        causes=("data damaged",),
        must_name=False,
        may_stop=True,
    ),
    Fault(name="flipped data", family="data", truth="data", causes=("data damaged",), must_name=False, may_stop=True),
    Fault(name="clock forward", family="clock", truth="none", may_restart=False, needs=clock.lack()),
    Fault(name="clock back", family="clock", truth="none", may_restart=False, needs=clock.lack()),
    Fault(
        name="slow rank",
        family="slow",
        truth="rank",
        causes=("rank slow",),
        must_name=False,
        may_restart=False,
        weight=6,
    ),
    Fault(name="slow rank after a save cut short", family="slow", truth="rank", causes=_RANK),
)
UNDISTURBED = Fault(name="nothing", family="none", truth="none", may_restart=False)
BY_NAME = {fault.name: fault for fault in FAULTS}
SECONDS = ("kill rank", "stop rank", "kill executor")  # of a run with a fault of another kind before
WITH_SECOND = ("kill rank", "stop rank", "kill executor", "kill driver", "slow disk", "clock forward", "kill loader")
SECOND_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class Injection:
    """One fault at one moment."""

    fault: str
    moment: Moment
    step: int = 0  # during which it comes, at moment "step"
    fraction: float = 0.0  # of that step's usual time, or of a start's
    rank: int = 0  # victim, where the fault has one; its node is the victim of a node's fault
    seed: int = 0  # of what else the fault draws

    @property
    def node_index(self) -> int:
        """The victim's node among those that run first."""
        return self.rank * 2 // NUM_RANKS


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is done to one run."""

    number: int
    fault: Fault
    injections: tuple[Injection, ...]

    @property
    def num_spares(self) -> int:
        """Nodes in reserve: one where a node may be lost; each costs a run a sixth of its time."""
        return int(any(BY_NAME[injection.fault].truth in ("node", "link") for injection in self.injections))


def make_plan(seed: int, number: int, only: str | None = None) -> Plan:
    """Return the plan of a run: each round of runs has every fault that can be tried here, in an order of its own."""
    round_of = [fault.name for fault in FAULTS if not fault.needs for _ in range(fault.weight)]
    turn = random.Random(f"{seed} round {number // len(round_of)}")
    turn.shuffle(round_of)
    fault = BY_NAME[only or round_of[number % len(round_of)]]
    chance = random.Random(f"{seed} {number} {fault.name}")
    return Plan(number=number, fault=fault, injections=_injections(fault, chance))


def _injections(fault: Fault, chance: random.Random) -> tuple[Injection, ...]:
    first = _draw(fault.name, chance, early=fault.family == "data")  # while there is data to read
    if fault.name == "kill in a save":
        return (_draw("kill rank", chance, moment="save"),)
    if fault.name in ("kill in a recovery", "stop in a recovery"):
        second = "kill rank" if fault.name.startswith("kill") else "stop rank"
        return (_draw("kill rank", chance, early=True), _draw(second, chance, moment="recovery"))
    if fault.name == "slow rank after a save cut short":
        return (_draw("kill rank", chance, moment="save"), _draw("slow rank", chance, moment="recovery"))
    if fault.family in ("damage",):
        return (first,)
    if fault.name in WITH_SECOND and chance.random() < SECOND_SHARE:
        return (_draw(fault.name, chance, early=True), _draw(chance.choice(SECONDS), chance, late=True))
    return (first,)


def _draw(
    fault: str, chance: random.Random, *, moment: Moment | None = None, early: bool = False, late: bool = False
) -> Injection:
    if moment is None:
        has_start = BY_NAME[fault].family in ("kill", "stop") and not (early or late)
        moment = "start" if has_start and chance.random() < 0.1 else "step"
    first = NUM_STEPS // 2 + 2 if late else SAVE_EVERY + 1 if BY_NAME[fault].family == "damage" else 1
    last = NUM_STEPS // 2 if early else NUM_STEPS - (LOADED_STEPS if BY_NAME[fault].truth == "loader" else 0) - 3
    return Injection(
        fault=fault,
        moment=moment,
        step=chance.randint(first, last),
        fraction=chance.random(),
        rank=0 if fault.endswith("rank 0") else chance.randrange(NUM_RANKS),
        seed=chance.randrange(2**32),
    )
