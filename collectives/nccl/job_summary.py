"""Summary of the job in a log of NCCL: where its ranks run, and by which networks, devices and channels they talk.

A training job has many communicators; the one of most ranks stands for the job. What no message says is UNKNOWN or
empty. GPUs are numbered by their rank's place among the ranks of its host, because NCCL's own number of a GPU depends
on which GPUs its process sees.

Left out: CollNet and NVLS; ranks of smaller communicators.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fabrictune.collectives.nccl.flows import DEFAULT_QPS, QPS_SETTING
from fabrictune.collectives.nccl.log import NO_COMMUNICATOR, NcclLog
from fabrictune.collectives.nccl.log_facts import (
    NETWORK_PREFIX,
    NO_RANK,
    ChannelFact,
    NeighbourFact,
    RingFact,
    TreeFact,
)
from fabrictune.foundation.flows import UNKNOWN

HCA_SETTING = "NCCL_IB_HCA"
GPU_DIRECT_FLAG = "GDRDMA"
VERBS_NETWORK = "IB"

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class GpuDevices:
    """Network devices through which one GPU's connections to other hosts go."""

    host: str
    gpu_index: int  # place among the GPUs of its host
    rank: int
    devices: tuple[str, ...]
    is_relayed: bool  # some go through another GPU's device (PXN)


@dataclass(frozen=True, kw_only=True)
class JobSummary:
    """What a log says of its job."""

    library: str  # NCCL, RCCL; "" where it is not logged
    versions: tuple[str, ...]
    num_ranks: int
    num_hosts: int
    gpus_of_host: Mapping[str, int]  # ranks of the job, for the hosts and ranks that the log names
    num_ranks_of_host: int  # by NCCL's own word
    logging_hosts: tuple[str, ...]
    num_communicators: int
    networks: tuple[str, ...]  # between hosts, with libfabric's provider
    inside_hosts: Mapping[str, int]  # channels inside hosts by transport: P2P, SHM
    devices: Mapping[str, tuple[str, ...]]  # names that NET/IB found, by host
    num_provider_devices: int  # that libfabric found on a host
    link_layers: tuple[str, ...]
    rate_bps: int  # of the slowest device
    hca_settings: tuple[str, ...]
    gpu_devices: tuple[GpuDevices, ...]
    num_channels: int  # for collectives
    num_p2p_channels_per_peer: int
    ring_orders: tuple[tuple[int, ...], ...]  # that differ
    num_rings: int
    tree_roots: tuple[int, ...]
    num_trees: int
    num_qps: int  # of a connection
    is_num_qps_set: bool
    num_connections: int  # logged sides of connections between hosts
    num_gpu_direct: int  # of these
    num_relayed: int  # of these, through another GPU's device
    algorithms: tuple[str, ...]  # algorithm and protocol
    environment: Mapping[str, tuple[str, ...]]  # values of each setting, one where all hosts agree

    @property
    def uses_verbs(self) -> bool:
        """Return whether NET/IB, or its plug-in with SHARP, is among the networks, or none is logged."""
        return not self.networks or any(network.startswith(VERBS_NETWORK) for network in self.networks)

    @property
    def gpus_per_host(self) -> int:
        """Return the most GPUs of a host: NCCL's own word, or a count that is the least where ranks are missing."""
        counted = max(self.gpus_of_host.values(), default=UNKNOWN)
        spread = -(-self.num_ranks // self.num_hosts) if self.num_ranks > 0 and self.num_hosts > 0 else UNKNOWN
        return self.num_ranks_of_host if self.num_ranks_of_host > 0 else max(counted, spread)

    @property
    def has_all_ranks(self) -> bool:
        """Return whether the log says where every rank runs, or how many a host has."""
        return self.num_ranks_of_host > 0 or sum(self.gpus_of_host.values()) == self.num_ranks

    @property
    def devices_per_host(self) -> int:
        """Return the most devices of a host, found or used; UNKNOWN where the log names none."""
        used = defaultdict[str, set[str]](set)
        for one in self.gpu_devices:
            used[one.host].update(one.devices)
        counts = [*map(len, self.devices.values()), *map(len, used.values())]
        return max((count for count in counts if count), default=UNKNOWN)


def summarize_job(log: NcclLog) -> JobSummary:
    """Return the summary of a log's largest communicator."""
    ranks = _Ranks(log)
    network_channels = [fact for fact in log.channels if fact.device != UNKNOWN]
    inside = Counter(fact.transport.partition("/")[0] for fact in log.channels if fact.device == UNKNOWN)
    orders = [ring.ranks for ring in log.rings if len(ring.ranks) == ranks.num_ranks]
    qps = [value for value in log.settings(QPS_SETTING).values() if value.isdecimal() and len(value) < 4]
    counts = log.channel_counts
    trees = {(tree.channel, tree.rank): tree.parent for tree in log.trees}
    return JobSummary(
        library=log.versions[0].library if log.versions else "",
        versions=_unique(fact.version for fact in log.versions),
        num_ranks=ranks.num_ranks,
        num_hosts=ranks.num_hosts,
        num_ranks_of_host=ranks.ranks_of_host,
        gpus_of_host=dict(Counter(ranks.host_of.values())),
        logging_hosts=log.logging_hosts,
        num_communicators=len({fact.communicator for fact in log.ranks} - {NO_COMMUNICATOR}),
        networks=_networks(log),
        inside_hosts=dict(inside),
        devices=_devices(log),
        num_provider_devices=max((fact.num_devices for fact in log.providers), default=UNKNOWN),
        link_layers=_unique(fact.link_layer for fact in log.devices if fact.link_layer),
        rate_bps=min((fact.rate_bps for fact in log.device_rates), default=UNKNOWN),
        hca_settings=_unique(log.settings(HCA_SETTING).values()),
        gpu_devices=tuple(_gpu_devices(log, network_channels, ranks)),
        num_channels=max((fact.num_collective for fact in counts), default=_channels_of_rings(log)),
        num_p2p_channels_per_peer=max((fact.num_p2p_per_peer for fact in counts), default=UNKNOWN),
        ring_orders=_unique(orders),
        num_rings=len(orders),
        tree_roots=_unique(rank for (_, rank), parent in sorted(trees.items()) if parent == NO_RANK),
        num_trees=len({channel for channel, _ in trees}),
        num_qps=int(qps[0]) if qps else DEFAULT_QPS,
        is_num_qps_set=bool(qps),
        num_connections=len(network_channels),
        num_gpu_direct=sum(GPU_DIRECT_FLAG in fact.flags for fact in network_channels),
        num_relayed=sum(fact.proxy_rank != NO_RANK for fact in network_channels),
        algorithms=_unique(f"{fact.algorithm} {fact.protocol}" for fact in log.algorithms),
        environment=_environment(log),
    )


class _Ranks:
    """Hosts and places of the largest communicator's ranks."""

    def __init__(self, log: NcclLog) -> None:
        sizes = {fact.communicator: fact.num_ranks for fact in log.ranks if fact.num_ranks != UNKNOWN}
        self.communicator = max(sizes, key=lambda name: sizes[name], default=NO_COMMUNICATOR)
        hosts = log.host_of_rank()
        listed = {rank: host for (name, rank), host in hosts.items() if name == NO_COMMUNICATOR} or _writers(log)
        own = {rank: host for (name, rank), host in hosts.items() if name == self.communicator}
        in_rings = max((len(ring.ranks) for ring in log.rings), default=UNKNOWN)
        self.num_ranks = sizes.get(self.communicator, max(len(listed) or UNKNOWN, in_rings))
        beyond = {rank: host for rank, host in listed.items() if rank < self.num_ranks}
        self.host_of = dict(sorted({**beyond, **own}.items()))
        own_sizes = [fact for fact in log.sizes if fact.num_ranks == self.num_ranks]
        self.ranks_of_host = max((fact.ranks_of_host for fact in own_sizes), default=UNKNOWN)
        self.num_hosts = self._hosts(max((fact.num_hosts for fact in own_sizes), default=UNKNOWN))
        place: Counter[str] = Counter()
        self.gpu_of: dict[int, int] = {}
        for rank, host in self.host_of.items():
            self.gpu_of[rank] = place[host]
            place[host] += 1

    def _hosts(self, said: int) -> int:
        """Return the number of hosts: NCCL's own word, or that of a list of all ranks."""
        is_whole = len(self.host_of) == self.num_ranks
        return said if said != UNKNOWN else len(set(self.host_of.values())) if is_whole else UNKNOWN


def _writers(log: NcclLog) -> dict[int, str]:
    """Return the hosts of ranks in a log without messages of ranks: a channel's message comes from the rank itself."""
    if log.ranks:
        return {}
    return {
        (fact.destination_rank if fact.direction == "receive" else fact.source_rank): fact.host for fact in log.channels
    }


def _gpu_devices(log: NcclLog, channels: list[ChannelFact], ranks: _Ranks) -> Iterator[GpuDevices]:
    names = {(fact.host, fact.index): fact.name for fact in log.devices}
    only = {host: found[0] for host, found in _devices(log).items() if len(found) == 1}
    used = defaultdict[int, dict[str, bool]](dict)
    for fact in channels:
        rank = fact.source_rank if fact.direction == "send" else fact.destination_rank
        name = names.get((fact.host, fact.device)) or only.get(fact.host) or f"{fact.transport} {fact.device}"
        used[rank][name] = used[rank].get(name, False) or fact.proxy_rank != NO_RANK
    for rank in sorted(used):
        if rank in ranks.host_of:
            yield GpuDevices(
                host=ranks.host_of[rank],
                gpu_index=ranks.gpu_of[rank],
                rank=rank,
                devices=tuple(sorted(used[rank])),
                is_relayed=any(used[rank].values()),
            )


def _devices(log: NcclLog) -> dict[str, tuple[str, ...]]:
    """Return the single devices of each host; what NCCL merged out of several counts as these."""
    found = defaultdict[str, dict[str, None]](dict)
    for fact in log.devices:
        for name in fact.name.split("+"):
            found[fact.host][name] = None
    return {host: tuple(names) for host, names in found.items()}


def _networks(log: NcclLog) -> tuple[str, ...]:
    """Return the networks in use: those of channels, or those that were chosen where no channel is logged."""
    transports = _unique(fact.transport for fact in log.channels if fact.transport.startswith(NETWORK_PREFIX))
    used = tuple(transport.removeprefix(NETWORK_PREFIX) for transport in transports)
    names = used or _unique(fact.name for fact in log.networks)
    providers = ", ".join(_unique(fact.name for fact in log.providers))
    return tuple(f"{name} ({providers})" if providers and is_libfabric(name) else name for name in names)


def is_libfabric(network: str) -> bool:
    """Return whether a network is the plug-in for libfabric (aws-ofi-nccl), in any of its names."""
    return "Libfabric" in network or network.startswith("OFI")


def _channels_of_rings(log: NcclLog) -> int:
    """Return the number of channels by the rings and trees, UNKNOWN without any."""
    facts: list[RingFact | NeighbourFact | TreeFact] = [*log.rings, *log.neighbours, *log.trees]
    return max((fact.channel for fact in facts), default=UNKNOWN - 1) + 1


def _environment(log: NcclLog) -> dict[str, tuple[str, ...]]:
    values = defaultdict[str, dict[str, None]](dict)
    for fact in log.environment:
        values[fact.name][fact.value] = None
    return {name: tuple(values[name]) for name in sorted(values)}


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
