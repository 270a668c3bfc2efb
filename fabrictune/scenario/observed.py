"""Observed flows on a fabric: each end on its NIC, each source port as observed.

An end is found, in this order, by the scenario's own `endpoints`; by its host and device, where the fabric has a node
of that name with a port of that name (`devices` may translate it); by its host alone, where that has one NIC; by its
address, where the files know no host. Ends that are found nowhere are all reported, with the nearest name.

A flow that carried no payload is the way back of another and gives no queue pair. What was not observed is filled in:
queue-pair numbers as an adapter would count, source ports as the kernel derives them, and bytes; notes say how many.

Shapes: F flows, Q queue pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, require_one_of
from fabrictune.foundation.flows import UNKNOWN, Endpoint, ObservedFlows, ipv4_text
from fabrictune.foundation.rocev2 import source_port
from fabrictune.foundation.traces import Dependencies, Medium, TrafficTrace
from fabrictune.foundation.units import PS_PER_NS, format_bytes
from fabrictune.scenario.flow_files import FLOW_FORMATS, FlowQuestion, read_flows
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.queue_pairs import make_queue_pairs

MAX_MISTAKES = 20  # ends named one by one
MAX_GUESSES = 5000  # names among which the nearest is looked for
MAX_SPAN_NS = 2**63 // 1000 - 1  # what the event clock can count


@dataclass(frozen=True, kw_only=True)
class EndpointName:
    """The NIC of an observed end."""

    observed: str = field(metadata={"help": "address, host/device or host, as the files have it"})
    nic: str = field(metadata={"help": "host:port in the fabric"})


@dataclass(frozen=True, kw_only=True)
class DeviceName:
    """The port of a device, on every host."""

    device: str = field(metadata={"help": "as the files call it: mlx5_0"})
    port: str = field(metadata={"help": "as the fabric calls it: nic0"})


@dataclass(frozen=True, kw_only=True)
class ObservedSpec:
    """Real flows, from files."""

    files: tuple[Path, ...] = field(metadata={"help": "what was written on the real network"})
    format: str | None = field(
        default=None, metadata={"help": "by default recognised from the files", "one_of": tuple(FLOW_FORMATS)}
    )
    endpoints: tuple[EndpointName, ...] = field(default=(), metadata={"help": "NICs of ends, one by one"})
    devices: tuple[DeviceName, ...] = field(default=(), metadata={"help": "ports of devices, on all hosts"})
    hosts: tuple[str, ...] = field(
        default=(), metadata={"help": "order of the ring for nccl_graph, of the ranks for simccl"}
    )
    qps_per_connection: int | None = field(default=None, metadata={"help": "of NCCL, in place of the log's"})
    message_bytes: int = field(default=10**6, metadata={"help": "of a flow whose bytes were not observed"})
    priority: int = field(default=3, metadata={"help": "802.1p priority of the data"})

    def __post_init__(self) -> None:
        if self.format is not None:
            require_one_of(self.format, tuple(FLOW_FORMATS), where="format", what="format", error=InputError)
        if not self.files:
            raise InputError(Mistake(where="files", found="no file", allowed="one or more"))
        if self.message_bytes < 1:
            raise InputError(Mistake(where="message_bytes", found=str(self.message_bytes), allowed="1 B or more"))


def make_observed(spec: ObservedSpec, fabric: Fabric, seed: int) -> tuple[QueuePairs, TrafficTrace]:
    """Return a queue pair and a transfer for each flow that carried payload; raises InputError."""
    question = FlowQuestion(qps_per_connection=spec.qps_per_connection, hosts=spec.hosts)
    flows = read_flows(spec.files, question, spec.format)
    if (flows.bytes_F == 0).any():
        flows = flows.take(np.nonzero(flows.bytes_F)[0])
    if not len(flows):
        found = "no flow that carries payload between hosts"
        raise InputError(Mistake(where="files", found=found, next_step="; ".join(flows.notes)))
    source_nic_Q, destination_nic_Q = locate(flows, fabric, spec)
    queue_pairs, notes = _queue_pairs(flows, source_nic_Q, destination_nic_Q, spec.priority)
    return queue_pairs, _traffic(flows, queue_pairs, spec.message_bytes, [*notes, *_unused(flows, spec)])


def locate(flows: ObservedFlows, fabric: Fabric, spec: ObservedSpec) -> tuple[IntArray, IntArray]:
    """Return the NIC of each flow's source and destination; raises InputError naming the ends that have none."""
    directory = _Directory(fabric, spec)
    if directory.mistakes:
        raise InputError(*directory.mistakes)
    ends, source_F, destination_F = flows.endpoints()
    nic_E = np.array([directory.nic(end) for end in ends], np.int64)
    unknown = np.nonzero(nic_E == NO_NIC)[0].tolist()
    if unknown:
        _, first_E = np.unique(np.concatenate([source_F, destination_F]), return_index=True)
        origins = [flows.origin_F[first_E[end] % len(flows)] for end in unknown[:MAX_MISTAKES]]
        mistakes = [directory.mistake(ends[end], origin) for end, origin in zip(unknown, origins, strict=False)]
        rest = len(unknown) - len(mistakes)
        found = f"{rest} more ends that are no NICs of the fabric"
        raise InputError(*mistakes, *([Mistake(where="endpoints", found=found)] if rest else []))
    return nic_E[source_F], nic_E[destination_F]


class _Directory:
    """The names under which a fabric's NICs are found."""

    def __init__(self, fabric: Fabric, spec: ObservedSpec) -> None:
        self.fabric = fabric
        self.mistakes: list[Mistake] = []
        self.nic_by_port: dict[tuple[str, str], int] = {}
        self.nics_of_host: dict[str, set[int]] = {}
        for port in np.nonzero(fabric.port_nic_P != NO_NIC)[0].tolist():
            host, nic = fabric.node_name_N[fabric.port_node_P[port]], int(fabric.port_nic_P[port])
            self.nic_by_port[host, fabric.port_name_P[port]] = nic
            self.nics_of_host.setdefault(host, set()).add(nic)
        self.nic_by_address = {address: nic for nic, address in enumerate(fabric.nic_ipv4_C.tolist())}
        self.port_of_device = {device.device: device.port for device in spec.devices}
        self.nic_by_name = {endpoint.observed: self._named_nic(endpoint) for endpoint in spec.endpoints}

    def nic(self, end: Endpoint) -> int:
        """Return the NIC of an end, NO_NIC where there is none."""
        for name in _names(end):
            if name in self.nic_by_name:
                return self.nic_by_name[name]
        if not end.host:
            return self.nic_by_address.get(end.ipv4, NO_NIC)
        for device in (self.port_of_device.get(end.device, end.device), end.device):
            if (end.host, device) in self.nic_by_port:
                return self.nic_by_port[end.host, device]
        nics = self.nics_of_host.get(end.host, set())
        return next(iter(nics)) if len(nics) == 1 else NO_NIC

    def mistake(self, end: Endpoint, origin: str) -> Mistake:
        """Return the mistake of an end that has no NIC, and the lines that correct it."""
        name = next(iter(_names(end)), "")
        ports = [port for host, port in self.nic_by_port if host == end.host]
        if ports:
            nearest = nearest_name(end.device, ports)
            return Mistake(
                where=origin,
                found=f"{end}: the host has no NIC of that name",
                allowed=", ".join(ports[:16]),
                nearest=f"{end.host}:{nearest}" if nearest else "",
                next_step=f"under traffic: devices: [{{device: {end.device or '...'}, port: {nearest or ports[0]}}}]",
            )
        return Mistake(
            where=origin,
            found=f"{end}: no NIC of the fabric {self.fabric.name!r}",
            nearest=nearest_name(end.host, islice(self.nics_of_host, MAX_GUESSES)),
            next_step=f'under traffic: endpoints: [{{observed: "{name}", nic: "host:port"}}]' if name else "",
        )

    def _named_nic(self, endpoint: EndpointName) -> int:
        host, _, port = endpoint.nic.rpartition(":")
        nic = self.nic_by_port.get((host, port), NO_NIC)
        if nic == NO_NIC:
            labels = [":".join(known) for known in islice(self.nic_by_port, MAX_GUESSES)]
            found = f"{endpoint.observed!r} is said to be {endpoint.nic!r}, which is no NIC of the fabric"
            self.mistakes.append(Mistake(where="endpoints", found=found, nearest=nearest_name(endpoint.nic, labels)))
        return nic


def _names(end: Endpoint) -> Sequence[str]:
    """Return what `endpoints` may call an end, the most exact first."""
    names = [f"{end.host}/{end.device}"] if end.host and end.device else []
    names += [ipv4_text(end.ipv4)] if end.ipv4 != UNKNOWN else []
    return [*names, end.host] if end.host else names


def _queue_pairs(
    flows: ObservedFlows, source_nic_Q: IntArray, destination_nic_Q: IntArray, priority: int
) -> tuple[QueuePairs, list[str]]:
    """Return the queue pairs as observed, what was not filled in, and notes of how much that was."""
    made = make_queue_pairs(source_nic_Q, destination_nic_Q, priority=priority)
    source_qpn_Q = np.where(flows.source_qpn_F == UNKNOWN, made.source_qpn_Q, flows.source_qpn_F)
    destination_qpn_Q = np.where(flows.destination_qpn_F == UNKNOWN, made.destination_qpn_Q, flows.destination_qpn_F)
    is_known_Q = flows.source_port_F != UNKNOWN
    notes = [f"flows whose source port was not observed and is made up: {(~is_known_Q).sum()} of {len(flows)}"]
    return QueuePairs(
        source_nic_Q=source_nic_Q,
        destination_nic_Q=destination_nic_Q,
        source_qpn_Q=source_qpn_Q,
        destination_qpn_Q=destination_qpn_Q,
        source_port_Q=np.where(is_known_Q, flows.source_port_F, source_port(source_qpn_Q, destination_qpn_Q)),
        priority_Q=np.full(len(flows), priority, np.int64),
    ), [] if is_known_Q.all() else notes


def _unused(flows: ObservedFlows, spec: ObservedSpec) -> Iterator[str]:
    """Yield a note of the `endpoints`, and one of the `devices`, that no observed end has."""
    ends, _, _ = flows.endpoints()
    seen = {"endpoints": {name for end in ends for name in _names(end)}, "devices": {end.device for end in ends}}
    given = {
        "endpoints": [endpoint.observed for endpoint in spec.endpoints],
        "devices": [device.device for device in spec.devices],
    }
    for key, names in given.items():
        if idle := [name for name in names if name not in seen[key]]:
            yield f"traffic.{key} that no observed flow has, without effect: {len(idle)} (first {idle[0]!r})"


def _assumed(flows: ObservedFlows, message_bytes: int) -> Iterator[str]:
    """Yield a note of the flows whose bytes were not observed."""
    if num_unknown := int((flows.bytes_F == UNKNOWN).sum()):
        size = format_bytes(message_bytes)
        yield f"flows whose bytes were not observed, taken as {size} each: {num_unknown} of {len(flows)}"


def _traffic(flows: ObservedFlows, queue_pairs: QueuePairs, message_bytes: int, notes: Sequence[str]) -> TrafficTrace:
    """Return one transfer for each queue pair, which starts when its flow did; `notes` follow those of the flows."""
    num_rows = len(flows)
    is_timed_F = flows.first_ns_F != UNKNOWN
    begin_ns = int(flows.first_ns_F[is_timed_F].min(initial=np.iinfo(np.int64).max)) if is_timed_F.any() else 0
    after_ns_F = np.where(is_timed_F, flows.first_ns_F - begin_ns, 0)
    if (after_ns_F < 0).any() or after_ns_F.max(initial=0) > MAX_SPAN_NS:
        found, allowed = "flows whose times lie too far apart", f"{MAX_SPAN_NS // 10**9 // 86400} days"
        raise InputError(Mistake(where="files", found=found, allowed=allowed))
    return TrafficTrace(
        source_N=queue_pairs.source_nic_Q,
        destination_N=queue_pairs.destination_nic_Q,
        medium_N=np.full(num_rows, Medium.FABRIC, np.int64),
        qp_N=np.arange(num_rows),
        bytes_N=np.where(flows.bytes_F == UNKNOWN, message_bytes, flows.bytes_F),
        start_ps_N=after_ns_F * PS_PER_NS,
        delay_ps_N=np.zeros(num_rows, np.int64),
        operation_N=np.full(num_rows, UNKNOWN, np.int64),
        dependencies=Dependencies.none(num_rows),
        notes=(*flows.notes, *notes, *_assumed(flows, message_bytes)),
    )
