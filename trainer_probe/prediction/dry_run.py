"""The program of a recipe's step, written by the trainer's dry run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from fabrictune.trainer_probe.planning.dry_run import ReplayedPasses, run_alone
from fabrictune.trainer_probe.planning.operation_clock import OperationClock
from fabrictune.trainer_probe.planning.operation_costs import OperationCost, Work
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.prediction.program import (
    Block,
    ProgramLedger,
    ProgramWork,
    ProgramWriter,
    Segment,
    StepProgram,
)
from fabrictune.trainer_probe.recipes.schema import Recipe

_COMPILED = "layers"
_COPIES = frozenset({"copy_", "clone"})


def write_program(recipe: Recipe) -> StepProgram:
    """Return the program of a recipe's step."""
    layout, writer = recipe.degrees.layout, ProgramWriter()
    for place in range(layout.pp):
        writer.add_place(_write_place(recipe, layout.rank(tp=0, dp=0, pp=place), writer))
    return writer.program(is_blocking=not POLICIES[recipe.overlap].overlaps("pp"))


def _write_place(recipe: Recipe, rank: int, writer: ProgramWriter) -> Block:
    clock = OperationWriter(recipe)
    ledger = ProgramLedger(rank, recipe.degrees.layout.axis_groups(), writer, clock.take)
    run_alone(recipe, rank, ledger, lambda passes: ReplayedPasses(passes, ledger, clock), clock)
    return ledger.events()


@dataclass(frozen=True)
class _Unpriced:
    """Costs of operations that are written down."""

    fuses: bool

    def cost(self, work: Work) -> OperationCost:
        """Return no cost."""
        return OperationCost(bound="memory", work_ps=0)


class OperationWriter(OperationClock):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """A clock that stands still and writes operations down."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(_Unpriced(recipe.compile == _COMPILED))
        degrees = recipe.degrees
        is_cut = POLICIES[recipe.overlap].overlaps("tp") and degrees.layout.tp > 1
        self._num_chunks = degrees.tensor_chunks if is_cut else 1
        self._chunk_rows = degrees.batch_size * recipe.model.sequence // degrees.layout.cp // self._num_chunks
        self._written: list[ProgramWork] = []

    def take(self) -> Segment:
        """Return the operations since this was called last."""
        self._close_kernel()
        written, self._written = self._written, []
        beside = _beside_chunks(written)
        return tuple(replace(own, is_chunk_copy=number in beside) for number, own in enumerate(written))

    def _advance(self, name: str, work: Work) -> None:
        product = work.product
        is_chunk = product is not None and product.layout != "NT" and product.m == self._chunk_rows
        num_chunks = self._num_chunks if is_chunk else 1
        is_copy = name in _COPIES
        self._written.append(ProgramWork(work=work, part=self._part, num_chunks=num_chunks, is_chunk_copy=is_copy))


def _beside_chunks(written: Sequence[ProgramWork]) -> set[int]:
    """Return the numbers of the copies that lead to or from a chunk of a product, with no other operation between."""
    found: set[int] = set()
    for number, own in enumerate(written):
        if own.num_chunks > 1:
            for places in (range(number - 1, -1, -1), range(number + 1, len(written))):
                found.update(takewhile(lambda place: written[place].is_chunk_copy, places))
    return found
