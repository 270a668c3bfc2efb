"""Specification of a bench: operations, sizes in nccl-tests' steps, and iterations.

A size is nccl-tests': the full buffer of one rank. It is rounded down to whole elements, and to as many for every rank
where the operation cuts its buffer into parts.

Source: NVIDIA nccl-tests, README.md (arguments) and doc/PERFORMANCE.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fabrictune.foundation.errors import InputError, Mistake, require_one_of
from fabrictune.foundation.traces import Operation

ELEMENT_BYTES = 4  # float32, nccl-tests' own choice
MAX_SIZES = 10_000
MAX_ITERATIONS = 100_000

BENCHED: Mapping[str, Operation] = {
    "all_reduce": Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "broadcast": Operation.BROADCAST,
    "all_to_all": Operation.ALL_TO_ALL,
    "send_recv": Operation.SEND,  # every rank to the next one in a ring, all at once
}
_IN_PARTS = (Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.ALL_TO_ALL)
# torch takes one tensor for both in the first two; nothing has both in an all-to-all and a send.
_PLACES: Mapping[Operation, tuple[bool, ...]] = {
    Operation.ALL_REDUCE: (True,),
    Operation.BROADCAST: (True,),
    Operation.ALL_GATHER: (False, True),
    Operation.REDUCE_SCATTER: (False, True),
    Operation.ALL_TO_ALL: (False,),
    Operation.SEND: (False,),
}


@dataclass(frozen=True, kw_only=True)
class BenchCase:
    """One operation at one size, between separate buffers or within one."""

    name: str  # in BENCHED
    size_bytes: int
    is_in_place: bool

    @property
    def operation(self) -> Operation:
        """Return the operation of the name."""
        return BENCHED[self.name]

    @property
    def num_elements(self) -> int:
        """Return the elements of the full buffer."""
        return self.size_bytes // ELEMENT_BYTES


@dataclass(frozen=True, kw_only=True)
class BenchSpec:
    """Cases of a bench, and iterations of each. A step is a factor, or a number of bytes where one is given."""

    names: tuple[str, ...] = ("all_reduce",)
    min_bytes: int = 8
    max_bytes: int = 2**25
    step_factor: int = 2
    step_bytes: int | None = None
    num_warmups: int = 5
    num_iterations: int = 20

    def __post_init__(self) -> None:
        for name in self.names:
            require_one_of(name, tuple(BENCHED), where="names", what="operation", error=InputError)
        mistakes = [
            Mistake(where=name, found=str(value), allowed=f"{least} to {most}")
            for name, value, least, most in (
                ("min_bytes", self.min_bytes, 1, self.max_bytes),
                ("step_factor", self.step_factor, 2, 1024),
                ("step_bytes", 1 if self.step_bytes is None else self.step_bytes, 1, 2**62),
                ("num_warmups", self.num_warmups, 0, MAX_ITERATIONS),
                ("num_iterations", self.num_iterations, 1, MAX_ITERATIONS),
            )
            if not least <= value <= most
        ]
        if not mistakes and self._num_sizes() > MAX_SIZES:
            found = f"{self._num_sizes():,} sizes"
            mistakes.append(Mistake(where="step_bytes", found=found, allowed=f"up to {MAX_SIZES:,}"))
        if mistakes:
            raise InputError(*mistakes)

    def sizes(self) -> tuple[int, ...]:
        """Return the sizes, in rising order."""
        if self.step_bytes is not None:
            return tuple(range(self.min_bytes, self.max_bytes + 1, self.step_bytes))
        sizes = [self.min_bytes]
        while (size := sizes[-1] * self.step_factor) <= self.max_bytes:
            sizes.append(size)
        return tuple(sizes)

    def cases(self, num_ranks: int, *, is_on_gpus: bool) -> tuple[BenchCase, ...]:
        """Return every case once, in the order of operations and sizes."""
        return tuple(
            BenchCase(name=name, size_bytes=size, is_in_place=is_in_place)
            for name in dict.fromkeys(self.names)
            for size in dict.fromkeys(_rounded(size, BENCHED[name], num_ranks) for size in self.sizes())
            for is_in_place in _places(BENCHED[name], is_on_gpus=is_on_gpus)
        )

    def _num_sizes(self) -> int:
        return 0 if self.step_bytes is None else (self.max_bytes - self.min_bytes) // self.step_bytes + 1


def _places(operation: Operation, *, is_on_gpus: bool) -> tuple[bool, ...]:
    """Return in which places an operation is run; the reduce-scatter on processors has a way of its own."""
    if operation == Operation.REDUCE_SCATTER and not is_on_gpus:
        return (False,)
    return _PLACES[operation]


def _rounded(size_bytes: int, operation: Operation, num_ranks: int) -> int:
    unit = ELEMENT_BYTES * (num_ranks if operation in _IN_PARTS else 1)
    return max(unit, size_bytes // unit * unit)
