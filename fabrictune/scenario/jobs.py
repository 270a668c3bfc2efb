"""Training jobs of a scenario: layout, placement of ranks, and the flows between neighbours."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, ValidationInfo

from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.settings.binding import NOT_A_KEY
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.host_choice import choose_hosts
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placed_ranks import read_placement
from fabrictune.topology.placement import PLACEMENTS, Placement, place
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.rank_pairs import neighbour_pairs

FREE = "free"  # instead of names of hosts: those that no other job of a mixture uses


def _texts(value: object) -> object:
    """Return a text, a number or a list of both as a tuple of texts; anything else as it is, to be refused."""
    entries = value if isinstance(value, list) else [value]
    if all(isinstance(entry, str | int) and not isinstance(entry, bool) for entry in entries):
        return tuple(map(str, entries))
    return value


def _strategy_or_file(value: object, info: ValidationInfo) -> object:
    """Return the name of a strategy as it is, and that of a file relative to the scenario's folder."""
    if isinstance(value, str) and value not in PLACEMENTS and ("." in value or "/" in value) and "\0" not in value:
        assert isinstance(info.context, Path), "the folder of the file"
        return info.context / value
    return value


HostNames = Annotated[tuple[str, ...], BeforeValidator(_texts)]
HostName = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
PlacementName = Annotated[str | Path, BeforeValidator(_strategy_or_file)]


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A job's ranks, and where they run."""

    layout: ParallelLayout = field(metadata={"help": "degrees of parallelism, and the order of ranks"})
    hosts: HostNames = field(
        default=(), metadata={"help": "that it may use: names, numbers, gpu[07-12], switches for theirs; or free"}
    )
    first_host: HostName | None = field(default=None, metadata={"help": "name or number; those before it are not used"})
    placement: PlacementName = field(
        default="contiguous",
        metadata={
            "help": "how ranks are dealt over the hosts; or a file of theirs: CSV, host file, MPI rank file",
            "one_of": tuple(PLACEMENTS),
        },
    )
    placement_seed: int = field(default=0, metadata={"help": "of the random placement"})
    gpus_per_host: int | None = field(default=None, metadata={"help": "as many as a host has NICs"})
    expansion: ExpansionSpec = field(default_factory=ExpansionSpec, metadata={"help": "requests to messages"})
    planned: Placement | None = field(default=None, repr=False, compare=False, metadata=NOT_A_KEY)  # instead of these

    def __post_init__(self) -> None:
        if isinstance(self.placement, str) and self.placement not in PLACEMENTS:
            raise InputError(
                Mistake(
                    where="placement",
                    found=f"unknown placement {quote(self.placement)}",
                    allowed=f"{', '.join(PLACEMENTS)}, or the name of a file, as placement.csv",
                    nearest=nearest_name(self.placement, PLACEMENTS),
                )
            )
        if FREE in self.hosts and self.hosts != (FREE,):
            allowed = f"{FREE} alone, or hosts without it"
            raise InputError(Mistake(where="hosts", found=", ".join(self.hosts)[:60], allowed=allowed))
        if self.gpus_per_host is not None and self.gpus_per_host < 1:
            raise InputError(Mistake(where="gpus_per_host", found=str(self.gpus_per_host), allowed="1 or more"))
        if not 0 <= self.placement_seed < 2**63:
            raise InputError(Mistake(where="placement_seed", found=str(self.placement_seed), allowed="0 to 2**63 - 1"))

    def place_on(self, fabric: Fabric, *, name: str = "", taken: Collection[int] = ()) -> Placement:
        """Return where each rank runs; raises InputError where the hosts are too few, and for those of a wrong name.

        `name` is the job's in a placement file; `taken` are the hosts of others, which `hosts: free` leaves out.
        """
        if self.planned is not None:
            return self.planned
        gpus_per_host, seed = self.num_gpus_of_host(fabric), self.placement_seed
        if isinstance(self.placement, Path):
            with _named_as_file(self.placement):
                return read_placement(self.placement, self.layout, fabric, gpus_per_host=gpus_per_host, job=name)
        hosts = self._hosts_of(fabric, taken)
        return place(self.layout, fabric, self.placement, gpus_per_host=gpus_per_host, seed=seed, hosts=hosts)

    def _hosts_of(self, fabric: Fabric, taken: Collection[int]) -> Sequence[int] | None:
        """Return the hosts that the job may use, None for all."""
        if not self.hosts and self.first_host is None:
            return None
        is_free = self.hosts == (FREE,)
        hosts = choose_hosts(fabric, () if is_free else self.hosts, first_host=self.first_host)
        return [host for host in hosts if host not in taken] if is_free else hosts

    def num_gpus_of_host(self, fabric: Fabric) -> int:
        """Return how many GPUs a host of the fabric has."""
        return self.gpus_per_host or int(np.bincount(fabric.nic_host_C).max(initial=1))


@contextmanager
def _named_as_file(path: Path) -> Iterator[None]:
    """Put `./` before a bare file name in the place of a mistake: `four.hosts` could be the key `hosts` of a room."""
    try:
        yield
    except InputError as error:
        bare = path.name if path.name == str(path) else "\0"
        raise type(error)(
            *(
                replace(mistake, where=f"./{mistake.where}") if mistake.where.startswith(bare) else mistake
                for mistake in error.mistakes
            )
        ) from error


@dataclass(frozen=True, kw_only=True)
class NeighboursSpec(JobSpec):
    """Every rank sends one message to each of its neighbours along the axes, all at once."""

    axes: tuple[Axis, ...] = field(default=("dp",), metadata={"help": "pp: both ways between stages; others: rings"})
    message_bytes: int = field(default=1_000_000, metadata={"help": "size of each message"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.message_bytes < self.expansion.qps_per_connection:
            allowed = "a byte for each queue pair of a connection, or more"
            raise InputError(Mistake(where="message_bytes", found=str(self.message_bytes), allowed=allowed))


def make_neighbours(spec: NeighboursSpec, fabric: Fabric, seed: int) -> tuple[QueuePairs, TrafficTrace]:
    """Return a connection for each pair of neighbours on different hosts, its message split over its queue pairs."""
    placement, pairs = spec.place_on(fabric), neighbour_pairs(spec.layout, spec.axes)
    is_on_fabric_E = placement.host_R[pairs.source_E] != placement.host_R[pairs.destination_E]
    num_qps = spec.expansion.qps_per_connection
    source_N = np.repeat(placement.nic_R[pairs.source_E[is_on_fabric_E]], num_qps)
    destination_N = np.repeat(placement.nic_R[pairs.destination_E[is_on_fabric_E]], num_qps)
    num_messages = len(source_N)
    size, rest = divmod(spec.message_bytes, num_qps)
    traffic = TrafficTrace(
        source_N=source_N,
        destination_N=destination_N,
        medium_N=np.full(num_messages, Medium.FABRIC),
        qp_N=np.arange(num_messages),
        bytes_N=size + (np.arange(num_messages) % num_qps < rest),
        start_ps_N=np.zeros(num_messages, np.int64),
        delay_ps_N=np.zeros(num_messages, np.int64),
        operation_N=np.full(num_messages, UNKNOWN),
        dependencies=Dependencies.none(num_messages),
        notes=placement.notes,
    )
    return make_queue_pairs(source_N, destination_N, priority=spec.expansion.priority), traffic
