"""From queue pairs that hang to a port of the fabric: what their paths share, and what counters say of it.

The switches' hash decides which of several equal paths a queue pair takes. Where the user names it, and both numbers of
a queue pair are known, there is one path; else all ports that it may take are looked at, by many seeds of an ideal
hash. A port is named by its counters; without any, the ports that all hung queue pairs share and no other one uses.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fabrictune.foundation.flows import UNKNOWN, Flow, ObservedFlows, collect_flows
from fabrictune.foundation.wording import count
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.counters.differences import Comparison
from fabrictune.scenario.observed import DeviceName, ObservedSpec, locate
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.path_tracing import PathTracer
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import data_headers

NUM_SEEDS = 32  # of an ideal hash, where the switches' own is not known
MAX_FLOWS = 4096  # hung or other queue pairs whose paths are looked at
TROUBLES = (  # gravest first
    CounterClass.LINK_DOWN,
    CounterClass.PHYSICAL_ERROR,
    CounterClass.RETRY_EXCEEDED,
    CounterClass.COMPLETION_ERROR,
    CounterClass.PAUSE_STORM,
    CounterClass.DISCARD,
    CounterClass.TIMEOUT_RETRANSMISSION,
    CounterClass.SEQUENCE_ERROR,
    CounterClass.TIME_PAUSED,
    CounterClass.PAUSE_RECEIVED,
)


@dataclass(frozen=True, kw_only=True)
class SuspectPort:
    """A port on the ways of hung queue pairs."""

    link: str  # in the direction of the data
    num_hung: int  # hung queue pairs that take it, or may
    num_others: int
    troubles: tuple[str, ...] = ()  # what its counters show, of either end of the link


@dataclass(frozen=True, kw_only=True)
class HungPorts:
    """The ports to look at, the most suspect first, and how they were found."""

    ports: tuple[SuspectPort, ...]
    num_hung: int
    is_exact: bool  # the hash and all numbers are known
    is_by_counters: bool
    notes: tuple[str, ...] = ()


def find_hung_ports(
    fabric: Fabric,
    hung: Sequence[Flow],
    others: Sequence[Flow],
    *,
    devices: Sequence[DeviceName] = (),
    hash_spec: HashSpec | None = None,
    comparison: Comparison | None = None,
) -> HungPorts:
    """Return the ports of hung queue pairs that are most suspect; raises InputError for ends that are no NICs."""
    hung, others = hung[:MAX_FLOWS], others[:MAX_FLOWS]
    spec = ObservedSpec(files=(Path("log"),), devices=tuple(devices))
    num_hung, is_exact = _ports_of(fabric, collect_flows(list(hung), []), spec, hash_spec)
    num_others, _ = _ports_of(fabric, collect_flows(list(others), []), spec, hash_spec) if others else (Counter(), True)
    troubles = _troubles_of(fabric, comparison, {one.device: one.port for one in devices}) if comparison else {}
    rows = [
        SuspectPort(
            link=fabric.link_label(port),
            num_hung=number,
            num_others=num_others[port],
            troubles=_either_end(fabric, port, troubles),
        )
        for port, number in num_hung.items()
    ]
    by_counters = sorted((row for row in rows if row.troubles), key=lambda row: (_gravity(row), -row.num_hung))
    shared = [row for row in rows if row.num_hung == len(hung)]
    alone = [row for row in shared if not row.num_others]
    return HungPorts(
        ports=tuple(by_counters or alone or shared or sorted(rows, key=lambda row: -row.num_hung)),
        num_hung=len(hung),
        is_exact=is_exact,
        is_by_counters=bool(by_counters),
        notes=tuple(_notes(is_exact, hash_spec)),
    )


def _notes(is_exact: bool, hash_spec: HashSpec | None) -> Sequence[str]:
    if hash_spec is None:
        return [f"the switches' hash is not given: ports that {NUM_SEEDS} seeds of an ideal one lead through"]
    return [] if is_exact else ["queue pairs whose numbers the log lacks have source ports that are made up"]


def _ports_of(
    fabric: Fabric, flows: ObservedFlows, spec: ObservedSpec, hash_spec: HashSpec | None
) -> tuple[Counter[int], bool]:
    """Return how many flows take each port, or may, and whether their paths are known."""
    source_nic_F, destination_nic_F = locate(flows, fabric, spec)
    made = make_queue_pairs(source_nic_F, destination_nic_F)
    is_known_F = (flows.source_qpn_F != UNKNOWN) & (flows.destination_qpn_F != UNKNOWN)
    queue_pairs = replace(
        made,
        destination_qpn_Q=np.where(is_known_F, flows.destination_qpn_F, made.destination_qpn_Q),
        source_port_Q=np.where(flows.source_port_F == UNKNOWN, made.source_port_Q, flows.source_port_F),
    )
    tracer = PathTracer(fabric, source_nic_F, destination_nic_F)
    hashes = [hash_spec] if hash_spec else [HashSpec(seed=seed) for seed in range(NUM_SEEDS)]
    taken = [tracer.paths(data_headers(fabric, queue_pairs), one) for one in hashes]
    found = Counter[int]()
    for flow in range(len(flows)):
        found.update({port for path in taken for port in path[flow].tolist() if port != NO_PORT})
    return found, hash_spec is not None and bool(is_known_F.all())


def _troubles_of(fabric: Fabric, comparison: Comparison, port_of_device: Mapping[str, str]) -> Mapping[int, list[str]]:
    """Return what counters show by port of the fabric, the gravest first."""
    number = {fabric.port_label(port): port for port in range(fabric.num_ports)}
    found: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for difference in comparison.differences:
        if difference.counter_class not in TROUBLES or not difference.amount:
            continue
        host, _, device = difference.after.device.partition("/")
        device = device.removesuffix("/1")
        port = number.get(f"{host}:{port_of_device.get(device, device)}")
        if port is not None:
            text = f"{difference.counter_class.value}: {difference.amount:,} ({difference.after.where})"
            found[port].append((TROUBLES.index(difference.counter_class), text))
    return {port: [text for _, text in sorted(texts)] for port, texts in found.items()}


def _either_end(fabric: Fabric, port: int, troubles: Mapping[int, list[str]]) -> tuple[str, ...]:
    peer = int(fabric.port_peer_P[port])
    return tuple(f"{fabric.port_label(end)}: {text}" for end in (port, peer) for text in troubles.get(end, ()))


def _gravity(row: SuspectPort) -> int:
    classes = [one.value for one in TROUBLES]
    return min(classes.index(text.split(": ")[1]) for text in row.troubles)


def describe_ports(found: HungPorts) -> str:
    """Return the named ports for people."""
    first = found.ports[0]
    if found.is_by_counters:
        return first.link
    return first.link if len(found.ports) == 1 else count(len(found.ports), "port")
