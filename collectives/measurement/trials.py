"""Operations on real buffers: their calls in torch, and the contents they must leave.

Buffers are filled with a pattern that differs between ranks and places, of whole numbers so small that every sum is
exact in float32; a result is right if every element is.

gloo's own reduce-scatter is an all-reduce, which moves twice the bytes. On processors it is an all-to-all
instead, whose parts each rank adds up itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist

from fabrictune.collectives.measurement.spec import BenchCase
from fabrictune.foundation.traces import Operation

# Newer torch has other names for the two, and warns of the old ones.
_gather_all = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
_scatter_sums = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
_PERIOD = 1021  # a prime; sums over up to 16,000 ranks stay below 2**24


@dataclass(frozen=True, kw_only=True)
class RankPlace:
    """Rank that runs it, and device of its buffers."""

    rank: int
    num_ranks: int
    device: torch.device


@dataclass(frozen=True, kw_only=True)
class CollectiveTrial:
    """An operation on buffers of one size. It may be run any number of times; `run` returns when it is done."""

    source: torch.Tensor
    result: torch.Tensor  # shares memory with the source in place
    run: Callable[[], None]
    expected: Callable[[], torch.Tensor]
    pattern: Callable[[], torch.Tensor]

    def clear(self) -> None:
        """Fill the buffers with zeros, which stay zeros however often they are added up."""
        self.source.zero_()
        self.result.zero_()

    def count_wrong(self) -> int:
        """Run once on the pattern, and return how many elements of the result are wrong."""
        self.result.fill_(-1.0)
        self.source.copy_(self.pattern())
        self.run()
        return int((self.result != self.expected()).sum().item())


def make_trial(case: BenchCase, place: RankPlace) -> CollectiveTrial:
    """Return a case's buffers and how it is run on them."""
    return _MAKERS[case.operation](case, place)


def _pattern(place: RankPlace, rank: int, length: int, start: int = 0) -> torch.Tensor:
    """Return `length` elements of what `rank` has, from `start` on."""
    index = torch.arange(start, start + length, device=place.device, dtype=torch.int64)
    return ((index * 7 + rank * 131) % _PERIOD).to(torch.float32)


def _sum(place: RankPlace, length: int, start: int = 0) -> torch.Tensor:
    total = _pattern(place, 0, length, start)
    for rank in range(1, place.num_ranks):
        total += _pattern(place, rank, length, start)
    return total


def _all_reduce(case: BenchCase, place: RankPlace) -> CollectiveTrial:
    buffer = torch.zeros(case.num_elements, device=place.device)
    return CollectiveTrial(
        source=buffer,
        result=buffer,
        run=_done(place, lambda: dist.all_reduce(buffer)),
        expected=lambda: _sum(place, case.num_elements),
        pattern=lambda: _pattern(place, place.rank, case.num_elements),
    )


def _broadcast(case: BenchCase, place: RankPlace) -> CollectiveTrial:
    buffer = torch.zeros(case.num_elements, device=place.device)
    return CollectiveTrial(
        source=buffer,
        result=buffer,
        run=_done(place, lambda: dist.broadcast(buffer, 0)),
        expected=lambda: _pattern(place, 0, case.num_elements),
        pattern=lambda: _pattern(place, place.rank, case.num_elements),
    )


def _all_gather(case: BenchCase, place: RankPlace) -> CollectiveTrial:
    length = case.num_elements // place.num_ranks
    result = torch.zeros(case.num_elements, device=place.device)
    own = result[place.rank * length : (place.rank + 1) * length]
    source = own if case.is_in_place else torch.zeros(length, device=place.device)
    return CollectiveTrial(
        source=source,
        result=result,
        run=_done(place, lambda: _gather_all(result, source)),
        expected=lambda: torch.cat([_pattern(place, rank, length) for rank in range(place.num_ranks)]),
        pattern=lambda: _pattern(place, place.rank, length),
    )


def _reduce_scatter(case: BenchCase, place: RankPlace) -> CollectiveTrial:
    length = case.num_elements // place.num_ranks
    source = torch.zeros(case.num_elements, device=place.device)
    own = source[place.rank * length : (place.rank + 1) * length]
    result = own if case.is_in_place else torch.zeros(length, device=place.device)
    is_on_gpu = place.device.type == "cuda"
    return CollectiveTrial(
        source=source,
        result=result,
        run=_done(place, (lambda: _scatter_sums(result, source)) if is_on_gpu else _exchange_and_add(source, result)),
        expected=lambda: _sum(place, length, place.rank * length),
        pattern=lambda: _pattern(place, place.rank, case.num_elements),
    )


def _exchange_and_add(source: torch.Tensor, result: torch.Tensor) -> Callable[[], object]:
    """Return the reduce-scatter of processors, with a buffer of its own for the parts that come."""
    parts = torch.zeros_like(source)

    def run() -> None:
        dist.all_to_all_single(parts, source)
        torch.sum(parts.view(-1, len(result)), 0, out=result)

    return run


def _all_to_all(case: BenchCase, place: RankPlace) -> CollectiveTrial:
    length = case.num_elements // place.num_ranks
    source, result = (torch.zeros(case.num_elements, device=place.device) for _ in range(2))
    return CollectiveTrial(
        source=source,
        result=result,
        run=_done(place, lambda: dist.all_to_all_single(result, source)),
        expected=lambda: torch.cat(
            [_pattern(place, rank, length, place.rank * length) for rank in range(place.num_ranks)]
        ),
        pattern=lambda: _pattern(place, place.rank, case.num_elements),
    )


def _send_to_next(case: BenchCase, place: RankPlace) -> CollectiveTrial:
    source, result = (torch.zeros(case.num_elements, device=place.device) for _ in range(2))
    following, previous = (place.rank + 1) % place.num_ranks, (place.rank - 1) % place.num_ranks

    def exchange() -> None:
        sends = [dist.P2POp(dist.isend, source, following), dist.P2POp(dist.irecv, result, previous)]
        for work in dist.batch_isend_irecv(sends):
            work.wait()

    return CollectiveTrial(
        source=source,
        result=result,
        run=_done(place, exchange),
        expected=lambda: _pattern(place, previous, case.num_elements),
        pattern=lambda: _pattern(place, place.rank, case.num_elements),
    )


def _done(place: RankPlace, start: Callable[[], object]) -> Callable[[], None]:
    """Return a function that has ended only when the operation has: a GPU is waited for."""

    def run() -> None:
        start()
        if place.device.type == "cuda":
            torch.cuda.synchronize(place.device)

    return run


_MAKERS: Mapping[Operation, Callable[[BenchCase, RankPlace], CollectiveTrial]] = {
    Operation.ALL_REDUCE: _all_reduce,
    Operation.ALL_GATHER: _all_gather,
    Operation.REDUCE_SCATTER: _reduce_scatter,
    Operation.BROADCAST: _broadcast,
    Operation.ALL_TO_ALL: _all_to_all,
    Operation.SEND: _send_to_next,
}
