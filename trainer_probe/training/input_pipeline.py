"""The input pipeline: from a recipe's data to a token file, and from there to each rank's micro-batches.

A rank's batches come from its machine's loader, or one of its own; the next ones are prepared in the background while
a step computes.

Shapes: T tokens; V vocabulary; R rows of a replica; C columns, the sequence length and one; B samples of a micro-batch;
S sequence.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fabrictune.foundation.seeds import stream
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.data.loader import Loader, LoaderProcess
from fabrictune.trainer_probe.data.service import Service
from fabrictune.trainer_probe.data.token_file import TokenWriter
from fabrictune.trainer_probe.data.tokenization import ByteTokenizer, SubwordTokenizer, tokenize
from fabrictune.trainer_probe.recipes.schema import Recipe, SyntheticSource, TextSource, TokenSource

if TYPE_CHECKING:
    import torch

    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.model.forward import MicroBatch

_BLOCK_TOKENS = 2**20
_ZIPF_EXPONENT = 1.0  # the n-th most frequent id is as frequent as the first over n


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Data that the ranks of one machine share."""

    ranks: tuple[int, ...]
    tokens: Path
    job: str  # unique among the trainings on the machine
    is_supervised: bool = False  # its loaders end with the ranks that start them, also when stopped


def make_batches(recipe: Recipe, folder: Path) -> Batches:
    """Return the batches of the recipe's data; data that is no token file becomes one in `folder`.

    Raises TokenFileError where texts or token files can't be read, are cut short, or don't fit the model.
    """
    path = folder / "tokens"
    match recipe.data.spec:
        case TokenSource(path=given):
            path = given
        case TextSource(paths=texts, tokenizer=vocabulary):
            tokenize(texts, path, SubwordTokenizer(vocabulary) if vocabulary else ByteTokenizer())
        case SyntheticSource(num_tokens=num_tokens):
            _draw_tokens(path, num_tokens, recipe.model.vocabulary, recipe.seed)
    return Batches(recipe.batches(path))


class Feed:
    """The micro-batches of one step after another, the next ones copied to the device in the background."""

    def __init__(self, loader: Loader, batch_size: int, device: "torch.device") -> None:
        self._loader, self._batch_size, self._device = loader, batch_size, device
        self._background = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next = self._background.submit(self._copy_next)

    def take(self) -> "list[MicroBatch]":
        """Return the next step's micro-batches; raises FabrictuneError where there are none."""
        import torch

        from fabrictune.trainer_probe.model.forward import MicroBatch

        ids_RC = self._next.result()
        self._next = self._background.submit(self._copy_next)
        if ids_RC.is_cuda:  # the next copies leave its memory alone until the stream that reads it is done
            ids_RC.record_stream(torch.cuda.current_stream(self._device))
        return [
            MicroBatch(tokens_BS=part[:, :-1], targets_BS=part[:, 1:]) for part in torch.split(ids_RC, self._batch_size)
        ]

    def close(self) -> None:
        """End the work in the background."""
        self._background.shutdown()

    def _copy_next(self) -> "torch.Tensor":
        """Return the next step's ids on the device, to a GPU from pinned memory and in a stream of their own."""
        import torch

        ids_RC = torch.from_numpy(self._loader.take())
        if self._device.type != "cuda":
            return ids_RC.to(self._device)
        with torch.cuda.stream(self._stream):  # makes the device this thread's current one, which pinning asks for
            copied_RC = ids_RC.pin_memory().to(self._device, non_blocking=True)
        self._stream.synchronize()
        return copied_RC

    @cached_property
    def _stream(self) -> "torch.cuda.Stream":
        import torch

        return torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]


@contextmanager
def open_feed(
    recipe: Recipe, comm: "Comm", machine: Machine, device: "torch.device", *, first_place: int
) -> Iterator[Feed]:
    """Yield this rank's feed from a place on while the block runs; the machine's first rank owns the shared loader."""
    replica = comm.members("dp").index(comm.rank)
    with ExitStack() as stack:
        address = f"fabrictune-{machine.job}-{machine.ranks[0]}"  # containers of one host may share its names
        if recipe.loader == "worker":
            service = _service(recipe, machine, first_place, replicas=(replica,), num_workers=1)
            address = stack.enter_context(LoaderProcess(service, ends_with_owner=machine.is_supervised)).address
        elif comm.rank == machine.ranks[0]:
            replicas = sorted({int(comm.layout.coordinates(rank)["dp"]) for rank in machine.ranks})
            service = _service(recipe, machine, first_place, replicas=tuple(replicas), num_workers=len(machine.ranks))
            stack.enter_context(LoaderProcess(service, address, ends_with_owner=machine.is_supervised))
        loader = stack.enter_context(Loader(address, replica))
        feed = Feed(loader, recipe.degrees.batch_size, device)
        stack.callback(feed.close)
        yield feed


def _service(
    recipe: Recipe, machine: Machine, first_place: int, *, replicas: tuple[int, ...], num_workers: int
) -> Service:
    return Service(
        batches=recipe.batches(machine.tokens),
        replicas=replicas,
        num_workers=num_workers,
        first_place=first_place,
    )


def _draw_tokens(path: Path, num_tokens: int, vocabulary: int, seed: int) -> None:
    """Write a token file of ids in Zipf's proportions."""
    weight_V = np.arange(1, vocabulary + 1, dtype=np.float64) ** -_ZIPF_EXPONENT
    bound_V = np.cumsum(weight_V / weight_V.sum())
    random = stream(seed, "synthetic tokens")
    with TokenWriter(path, vocabulary) as writer:
        for first in range(0, num_tokens, _BLOCK_TOKENS):
            drawn_T = random.random(min(_BLOCK_TOKENS, num_tokens - first))
            writer.append(np.minimum(np.searchsorted(bound_V, drawn_T), vocabulary - 1))
