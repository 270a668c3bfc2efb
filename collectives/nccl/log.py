"""Facts in a log of NCCL (NCCL_DEBUG=INFO), or in those of several hosts together.

Ranks are numbers within a communicator, and a channel's message does not say which. The communicator that a process
last began to initialise on the same GPU is taken.

Left out: CollNet, NVLS and multicast; TRACE messages.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fabrictune.collectives.nccl.log_facts import (
    AlgorithmFact,
    ChannelCountFact,
    ChannelFact,
    DeviceFact,
    DeviceRateFact,
    EnvironmentFact,
    Fact,
    GpuDirectFact,
    HandshakeFact,
    NeighbourFact,
    NetworkFact,
    NoDeviceFact,
    ProviderFact,
    QueuePairFact,
    RankFact,
    ReceivingQueuePairFact,
    RingFact,
    RingPathFact,
    SizeFact,
    TreeFact,
    VersionFact,
    WarningFact,
)
from fabrictune.collectives.nccl.log_lines import NO_HOST, read_log_lines
from fabrictune.collectives.nccl.log_readers import is_unread, read_facts
from fabrictune.foundation.errors import InputError, Mistake

MAX_FACTS = 2_000_000
MAX_SHOWN = 120  # characters of a message
NO_COMMUNICATOR = ""  # where it is not known

Kind = TypeVar("Kind")


@dataclass(frozen=True, kw_only=True)
class NcclLog:
    """All facts of each kind, in the order in which they were written."""

    num_messages: int
    num_unread: int  # messages about channels in a wording that is not known
    first_unread: str  # the first of them, with its place
    versions: tuple[VersionFact, ...]
    ranks: tuple[RankFact, ...]
    devices: tuple[DeviceFact, ...]
    channels: tuple[ChannelFact, ...]
    communicators: tuple[str, ...]  # one for each of `channels`
    rings: tuple[RingFact, ...]
    neighbours: tuple[NeighbourFact, ...]
    trees: tuple[TreeFact, ...]
    environment: tuple[EnvironmentFact, ...]
    queue_pairs: tuple[QueuePairFact, ...]
    receiving_queue_pairs: tuple[ReceivingQueuePairFact, ...]
    handshakes: tuple[HandshakeFact, ...]
    networks: tuple[NetworkFact, ...]
    providers: tuple[ProviderFact, ...]
    hosts_without_devices: tuple[NoDeviceFact, ...]
    device_rates: tuple[DeviceRateFact, ...]
    sizes: tuple[SizeFact, ...]
    channel_counts: tuple[ChannelCountFact, ...]
    gpu_direct: tuple[GpuDirectFact, ...]
    ring_paths: tuple[RingPathFact, ...]
    algorithms: tuple[AlgorithmFact, ...]
    logging_hosts: tuple[str, ...]  # that wrote messages
    warnings: tuple[WarningFact, ...]

    def host_of_rank(self) -> dict[tuple[str, int], str]:
        """Return the host of each (communicator, rank); NO_COMMUNICATOR has the ranks that are on one host in all."""
        hosts: dict[tuple[str, int], str] = {}
        anywhere: dict[int, set[str]] = defaultdict(set)
        for fact in self.ranks:
            hosts[fact.communicator, fact.rank] = fact.host
            anywhere[fact.rank].add(fact.host)
        return hosts | {(NO_COMMUNICATOR, rank): min(names) for rank, names in anywhere.items() if len(names) == 1}

    def settings(self, name: str) -> dict[str, str]:
        """Return what a setting was on each host whose log has it."""
        return {fact.host: fact.value for fact in self.environment if fact.name == name}


def read_nccl_log(paths: Sequence[Path]) -> NcclLog:
    """Read the logs of one job; raises InputError where they hold no message of NCCL's."""
    facts: list[Fact] = []
    num_messages, num_unread, first_unread = 0, 0, ""
    logging_hosts: dict[str, None] = {}
    for path in paths:
        for line in read_log_lines(path):
            if line.host != NO_HOST:
                num_messages += 1
                logging_hosts[line.host] = None
            num_before = len(facts)
            facts.extend(read_facts(line))
            if len(facts) == num_before and line.host != NO_HOST and is_unread(line):
                num_unread += 1
                first_unread = first_unread or f"{line.where}: {line.message[:MAX_SHOWN]}"
            if len(facts) > MAX_FACTS:
                found, next_step = f"more than {MAX_FACTS:,} facts", "give the part of the log up to the first step"
                raise InputError(Mistake(where=line.where, found=found, next_step=next_step))
    if not num_messages:
        raise InputError(
            Mistake(
                where=", ".join(str(path) for path in paths),
                found="no message of NCCL",
                allowed="lines with `host:pid:tid [gpu] NCCL INFO ...`",
                next_step="run the job with NCCL_DEBUG=INFO",
            )
        )
    by_kind = _by_kind(facts)
    return NcclLog(
        num_messages=num_messages,
        num_unread=num_unread,
        first_unread=first_unread,
        versions=_of_kind(by_kind, VersionFact),
        ranks=_of_kind(by_kind, RankFact),
        devices=_of_kind(by_kind, DeviceFact),
        channels=_of_kind(by_kind, ChannelFact),
        communicators=_communicators(facts),
        rings=_of_kind(by_kind, RingFact),
        neighbours=_of_kind(by_kind, NeighbourFact),
        trees=_of_kind(by_kind, TreeFact),
        environment=_of_kind(by_kind, EnvironmentFact),
        queue_pairs=_of_kind(by_kind, QueuePairFact),
        receiving_queue_pairs=_of_kind(by_kind, ReceivingQueuePairFact),
        handshakes=_of_kind(by_kind, HandshakeFact),
        networks=_of_kind(by_kind, NetworkFact),
        providers=_of_kind(by_kind, ProviderFact),
        hosts_without_devices=_of_kind(by_kind, NoDeviceFact),
        device_rates=_of_kind(by_kind, DeviceRateFact),
        sizes=_of_kind(by_kind, SizeFact),
        channel_counts=_of_kind(by_kind, ChannelCountFact),
        gpu_direct=_of_kind(by_kind, GpuDirectFact),
        ring_paths=_of_kind(by_kind, RingPathFact),
        algorithms=_of_kind(by_kind, AlgorithmFact),
        logging_hosts=tuple(logging_hosts),
        warnings=_of_kind(by_kind, WarningFact),
    )


def _by_kind(facts: Sequence[Fact]) -> dict[type[Any], list[Fact]]:
    kinds = defaultdict[type[Any], list[Fact]](list)
    for fact in facts:
        kinds[type(fact)].append(fact)
    return kinds


def _of_kind(facts: Mapping[type[Any], Sequence[Fact]], kind: type[Kind]) -> tuple[Kind, ...]:
    return tuple(fact for fact in facts.get(kind, ()) if isinstance(fact, kind))


def _communicators(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return the communicator of each channel's message."""
    latest: dict[tuple[str, int, int], str] = {}  # of a process on a GPU
    found = []
    for fact in facts:
        if isinstance(fact, RankFact) and fact.communicator:
            latest[fact.host, fact.pid, fact.gpu] = fact.communicator
        elif isinstance(fact, ChannelFact):
            found.append(latest.get((fact.host, fact.pid, fact.gpu), NO_COMMUNICATOR))
    return tuple(found)
