"""Trials: what is planted where, drawn from a seed, and what a command named."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Part = Literal["simulated", "real", "testbed"]
CLEAN = "none"
STRAGGLERS = ("slow rank", "slow link", "lossy NIC", "garbage collection", "loader starvation", "clock offset")
SIMULATED_KINDS = (*STRAGGLERS, "lossy link", "hang")
REAL_KINDS = ("slow rank", "garbage collection", "loader starvation", "clock offset", "hang")
TESTBED_KINDS = ("slow link", "lossy link")
KINDS: dict[Part, tuple[str, ...]] = {"simulated": SIMULATED_KINDS, "real": REAL_KINDS, "testbed": TESTBED_KINDS}
SHARES = {64: 1.0, 256: 0.35, 1024: 0.1, 8: 1.0, 16: 1.0}  # of the trials of a kind that a size has
SIZES: dict[Part, tuple[int, ...]] = {"simulated": (64, 256, 1024), "real": (8, 16), "testbed": (8, 16)}


@dataclass(frozen=True, kw_only=True, order=True)
class Trial:
    """A fault, or none, in a job of a size."""

    part: Part
    size: int  # machines, each a rank; processes of a real job; hosts of a testbed, each a rank
    kind: str
    number: int

    @property
    def name(self) -> str:
        """Return it as a name of a folder."""
        return f"{self.size}-{self.kind.replace(' ', '-')}-{self.number}"

    def seed(self, seed: int) -> list[int]:
        """Return what its random numbers come from, together with the campaign's seed."""
        kinds = (CLEAN, *SIMULATED_KINDS)
        return [seed, self.size, kinds.index(self.kind), self.number]


@dataclass(frozen=True, kw_only=True)
class Name:
    """A cause that a command named, and where; no place: the whole job."""

    cause: str
    where: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What was planted, as a command has to name it. Each of the places is right."""

    cause: str
    places: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Result:
    """A trial's result."""

    trial: Trial
    truth: Truth | None  # None of a clean job
    names: tuple[Name, ...]
    answer_s: float  # of the command; of a hang, from the fault on

    @property
    def right(self) -> int:
        """Names of the cause at the place."""
        return sum(self.truth is not None and _fits(name, self.truth) for name in self.names)

    @property
    def is_found(self) -> bool:
        """Whether the cause is named, at the place or among few (`FEW`) that have it."""
        return self.truth is not None and any(_is_among(name, self.truth) for name in self.names)

    @property
    def is_located(self) -> bool:
        """Whether the cause is named at the place, exactly."""
        return self.right > 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the result of JSON values."""
        truth = values["truth"]
        return cls(
            trial=Trial(**values["trial"]),
            truth=Truth(cause=truth["cause"], places=tuple(map(tuple, truth["places"]))) if truth else None,
            names=tuple(Name(cause=name["cause"], where=tuple(name["where"])) for name in values["names"]),
            answer_s=values["answer_s"],
        )


FEW = 4  # places of which one has the fault: not located, but found


def make_trials(
    part: Part, *, sizes: Sequence[int], kinds: Sequence[str], trials: int, clean: int
) -> tuple[Trial, ...]:
    """Return the trials of a part: of each kind at each size, and clean jobs; `trials` is those of the first size."""
    rows = []
    for size in sizes:
        number = max(1, round(SHARES[size] * trials))
        counts = {CLEAN: clean, **{kind: number for kind in KINDS[part] if kind in kinds}}
        rows += [
            Trial(part=part, size=size, kind=kind, number=place)
            for kind, count in counts.items()
            for place in range(count)
        ]
    return tuple(rows)


def _fits(name: Name, truth: Truth) -> bool:
    return name.cause == truth.cause and name.where in truth.places


def _is_among(name: Name, truth: Truth) -> bool:
    if name.cause != truth.cause:
        return False
    is_few = 0 < len(name.where) <= FEW
    return name.where in truth.places or (is_few and any(set(place) <= set(name.where) for place in truth.places))
