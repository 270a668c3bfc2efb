"""Terms of a measured time: how often each parameter of a profile stands in it.

| series | time |
| --- | --- |
| collective inside a host | nvlink.latency + bus bytes / nvlink.collective |
| collective between hosts | nvlink.latency + rounds * network.latency + bytes of a NIC / network.rate |
| perftest, latency | legs * network.latency + bytes / network.rate; a read has two legs |
| perftest, bandwidth | network.message + bytes / network.rate |

Between hosts NCCL's own model says, for the smallest size, how many steps cross the network and what its constants take
beside them; they stand for rounds and for nvlink.latency where a profile describes the hosts. Bytes are those of the
algorithm. A ring crosses from host to host once for each host on its way round; all NICs of a host share what crosses.
The hierarchical algorithm adds up inside hosts first: a NIC carries the less, the more GPUs a host has. Messages of
perftest are faster than steps of a collective: beside collectives, they have parameters of their own (`wire`).

Source: collectives/alpha_beta.py and the algorithms' own costs; nccl-tests, doc/PERFORMANCE.md (bus bandwidth).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.collectives.nccl.tuning.collective_time import CollectiveTimes
from fabrictune.collectives.nccl.tuning.prediction import Prediction
from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.traces import Operation
from fabrictune.foundation.units import NS_PER_US, PS_PER_US
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.validate.fit.series import SeriesKey

AlgorithmName = Literal["ring", "hierarchical"]
_TRIED_US = (20, 30)  # above NCCL's own latencies, from where on a network's is added to them
PROGRAMS = ("Write", "Send", "Read")  # of perftest, the one first whose message costs are a sender's


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A number that is fitted: a latency in nanoseconds, or the time of a byte in nanoseconds."""

    name: str
    is_rate: bool
    meaning: str


PARAMETERS: Mapping[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        Parameter(name="nvlink.latency", is_rate=False, meaning="time of a collective of no bytes inside a host"),
        Parameter(name="nvlink.collective", is_rate=True, meaning="bus bandwidth of a large collective inside a host"),
        Parameter(name="network.latency", is_rate=False, meaning="time of a step between hosts, or of a message"),
        Parameter(name="network.rate", is_rate=True, meaning="rate that large messages reach on one GPU's NIC"),
        Parameter(name="network.message", is_rate=False, meaning="time of a message at its sender"),
        Parameter(name="wire.latency", is_rate=False, meaning="time of a message of perftest, beside collectives"),
        Parameter(name="wire.rate", is_rate=True, meaning="rate of perftest, beside collectives"),
    )
}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How often latencies stand in a time of a series, and how many bytes of each one of the size cross a link."""

    latency: Mapping[str, float]
    bytes: Mapping[str, float]
    constant_ns: float = 0.0  # of the program's own, beside these
    origin: str = ""  # what chose these latencies: "Tree LL"


def nccl_terms(key: SeriesKey, terms: Terms, size_bytes: int, profile: HardwareProfile) -> Terms:
    """Return the terms of a collective between hosts with the latencies of what NCCL chooses for a size.

    They are those given where NCCL's model says nothing of these ranks.
    """
    if not is_between_hosts(key) or key.is_local:
        return terms
    try:
        first, second = (_predicted(key, size_bytes, profile, latency_us) for latency_us in _TRIED_US)
    except InputError:  # ranks that are not dealt evenly, or a GPU that NCCL's model does not know
        return terms
    gain_us = second.duration.latency_us - first.duration.latency_us
    steps = gain_us / (_TRIED_US[1] - _TRIED_US[0])
    constant_us = first.duration.latency_us - steps * _TRIED_US[0]
    if not steps > 0 or constant_us < 0:
        return terms
    return replace(terms, latency={"network.latency": steps}, constant_ns=constant_us * NS_PER_US, origin=first.name)


def _predicted(key: SeriesKey, size_bytes: int, profile: HardwareProfile, latency_us: int) -> Prediction:
    network = replace(profile.network, latency_ps=latency_us * PS_PER_US)
    times = CollectiveTimes(profile=replace(profile, network=network))
    return times.of(BENCHED[key.operation], size_bytes, num_ranks=key.num_ranks, num_hosts=key.num_hosts)


def terms_of(key: SeriesKey, algorithm: AlgorithmName, *, is_beside_collectives: bool, has_message: bool) -> Terms:
    """Return the terms of a series; `has_message` says that its cost of a message is the profile's."""
    if key.kind == "collective":
        return _of_collective(key, algorithm)
    network = "wire" if is_beside_collectives else "network"
    rate = {f"{network}.rate": 1.0}
    if key.kind == "latency":
        return Terms(latency={f"{network}.latency": float(num_legs(key))}, bytes=rate)
    return Terms(latency={"network.message": 1.0} if has_message else {}, bytes=rate)


def num_legs(key: SeriesKey) -> int:
    """Return how often a latency of perftest crosses the network: a read or atomic, there and back."""
    return 2 if "Read" in key.operation or "Atomic" in key.operation else 1


def message_series(keys: Iterable[SeriesKey]) -> SeriesKey | None:
    """Return the series of bandwidths whose cost of a message is a sender's: of writes, on the fewest queue pairs."""

    def rank(key: SeriesKey) -> tuple[int, int]:
        programs = [number for number, name in enumerate(PROGRAMS) if name in key.operation]
        return (programs or [len(PROGRAMS)])[0], key.num_queue_pairs

    return min((key for key in keys if key.kind == "bandwidth"), key=rank, default=None)


def is_between_hosts(key: SeriesKey) -> bool:
    """Return whether a collective's ranks talk over the network."""
    return key.kind == "collective" and (key.num_hosts > 1 or key.is_local)


def _of_collective(key: SeriesKey, algorithm: AlgorithmName) -> Terms:
    operation, ranks = BENCHED[key.operation], key.num_ranks
    if not is_between_hosts(key):
        return Terms(latency={"nvlink.latency": 1.0}, bytes={"nvlink.collective": bus_factor(operation, ranks)})
    hosts = ranks if key.is_local else key.num_hosts
    local = ranks // hosts if ranks % hosts == 0 else 1
    inside = {"nvlink.latency": 1.0} if local > 1 else {}
    if operation == Operation.SEND:  # to the next rank of a ring: a host's last one crosses alone
        return Terms(latency={**inside, "network.latency": 1.0}, bytes={"network.rate": 1.0})
    cost = ALGORITHMS[algorithm].implementation_of(operation).cost(GroupShape(num_members=ranks, local_size=local))
    rounds, buffers = float(cost.rounds), cost.buffers
    if operation == Operation.ALL_TO_ALL:
        rounds, buffers = 1.0, (ranks - local) / ranks
    elif algorithm == "ring":
        rounds, buffers = float(math.ceil(cost.rounds * hosts / ranks)), bus_factor(operation, ranks) / local
    return Terms(latency={**inside, "network.latency": rounds}, bytes={"network.rate": buffers})
