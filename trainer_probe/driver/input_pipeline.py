"""Batches for a rank: from its machine's loader, or one of its own, made ready while the step before computes.

Shapes: R rows of a replica; C columns, the sequence length and one; B samples of a micro-batch; S sequence.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.loader import Loader, LoaderProcess
from fabrictune.trainer_probe.data.service import Service
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.recipes.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the ranks of one machine share."""

    ranks: tuple[int, ...]
    tokens: Path
    job: str  # a name that no other training on the machine has


class Feed:
    """The micro-batches of one step after another, the next ones cut and copied in the background."""

    def __init__(self, loader: Loader, batch_size: int, device: torch.device) -> None:
        self._loader, self._batch_size, self._device = loader, batch_size, device
        self._background = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next = self._background.submit(self._prepare)

    def take(self) -> list[MicroBatch]:
        """Return the next step's micro-batches; raises FabrictuneError where none will come."""
        found = self._next.result()
        self._next = self._background.submit(self._prepare)
        return found

    def close(self) -> None:
        """End the work in the background."""
        self._background.shutdown()

    def _prepare(self) -> list[MicroBatch]:
        ids_RC = torch.from_numpy(self._loader.take()).to(self._device)
        return [
            MicroBatch(tokens_BS=part[:, :-1], targets_BS=part[:, 1:]) for part in torch.split(ids_RC, self._batch_size)
        ]


@contextmanager
def feeding(recipe: Recipe, comm: Comm, machine: Machine, device: torch.device) -> Iterator[Feed]:
    """Give this rank its feed for as long as the block runs; the machine's first rank keeps the loader of all."""
    replica = comm.members("dp").index(comm.rank)
    with ExitStack() as open_things:
        address = f"fabrictune-{machine.job}-{machine.ranks[0]}"  # containers of one host may share its names
        if recipe.loader == "worker":
            service = _service(recipe, machine, replicas=(replica,), num_workers=1)
            address = open_things.enter_context(LoaderProcess(service)).address
        elif comm.rank == machine.ranks[0]:
            replicas = sorted({int(comm.layout.coordinates(rank)["dp"]) for rank in machine.ranks})
            service = _service(recipe, machine, replicas=tuple(replicas), num_workers=len(machine.ranks))
            open_things.enter_context(LoaderProcess(service, address))
        loader = open_things.enter_context(Loader(address, replica))
        feed = Feed(loader, recipe.degrees.batch_size, device)
        open_things.callback(feed.close)
        yield feed


def _service(recipe: Recipe, machine: Machine, *, replicas: tuple[int, ...], num_workers: int) -> Service:
    return Service(
        batches=recipe.batches(machine.tokens),
        replicas=replicas,
        num_workers=num_workers,
        first_place=recipe.first_sample,
    )
