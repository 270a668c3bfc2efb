"""Training jobs of a scenario: layout, placement of ranks, and the flows between neighbours."""

from dataclasses import dataclass, field

import numpy as np

from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.foundation.errors import InputError, Mistake, require_one_of
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.settings.binding import NOT_A_KEY
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import PLACEMENTS, Placement, place
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.rank_pairs import neighbour_pairs


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A job's ranks, and where they run."""

    layout: ParallelLayout = field(metadata={"help": "degrees of parallelism, and the order of ranks"})
    placement: str = field(
        default="contiguous", metadata={"help": "how ranks are dealt over the hosts", "one_of": tuple(PLACEMENTS)}
    )
    placement_seed: int = field(default=0, metadata={"help": "of the random placement"})
    gpus_per_host: int | None = field(default=None, metadata={"help": "as many as a host has NICs"})
    expansion: ExpansionSpec = field(default_factory=ExpansionSpec, metadata={"help": "requests to messages"})
    planned: Placement | None = field(default=None, repr=False, compare=False, metadata=NOT_A_KEY)  # instead of these

    def __post_init__(self) -> None:
        require_one_of(self.placement, tuple(PLACEMENTS), where="placement", what="placement", error=InputError)
        if self.gpus_per_host is not None and self.gpus_per_host < 1:
            raise InputError(Mistake(where="gpus_per_host", found=str(self.gpus_per_host), allowed="1 or more"))
        if not 0 <= self.placement_seed < 2**63:
            raise InputError(Mistake(where="placement_seed", found=str(self.placement_seed), allowed="0 to 2**63 - 1"))

    def place_on(self, fabric: Fabric) -> Placement:
        """Return where each rank runs; raises InputError where the fabric is too small."""
        if self.planned is not None:
            return self.planned
        gpus_per_host, seed = self.num_gpus_of_host(fabric), self.placement_seed
        return place(self.layout, fabric, self.placement, gpus_per_host=gpus_per_host, seed=seed)

    def num_gpus_of_host(self, fabric: Fabric) -> int:
        """Return how many GPUs a host of the fabric has."""
        return self.gpus_per_host or int(np.bincount(fabric.nic_host_C).max(initial=1))


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
    )
    return make_queue_pairs(source_N, destination_N, priority=spec.expansion.priority), traffic
