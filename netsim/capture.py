"""Packet captures of a run: RoCEv2 or Ultra Ethernet frames in a pcap file with nanosecond timestamps.

Transfers are RDMA writes of zeros, with immediate data where receives are counted. Addresses, queue-pair numbers and
source ports are the network's; the time counts from 1970 as 0. DSCP is the customary one of the packet's priority (26
for 3, 48 for 6, eight times the others), ECN says whether a switch has marked the packet, and the BECN bit of an
acknowledgement that it reports a mark.

Source: foundation/rocev2.py for the headers; InfiniBand Architecture Specification vol. 1, 9.7.5 (AETH), A17 (CNP).
Left out: the time to live stays as sent; RETH and immediate data take no time on the simulated wire; under selective
repeat an acknowledgement has the sequence number of the packet that caused it, and no standard header. What Ultra
Ethernet's frames have is said in `netsim/uet_capture.py`.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.checks import run_check
from fabrictune.foundation.finding_rules.simulation import CAPTURE_TRUNCATED
from fabrictune.foundation.pcap import pcap_header, pcap_record
from fabrictune.foundation.records import Confidence, RunRecord
from fabrictune.foundation.rocev2 import (
    CNP_RESERVED_BYTES,
    CONGESTION_EXPERIENCED,
    ECN_CAPABLE,
    IMMEDIATE_BYTES,
    NO_ECN,
    BaseTransportHeader,
    Opcode,
    Syndrome,
    pack_aeth,
    pack_packet,
    pack_reth,
)
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim import _engine
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.uet_capture import UetDscps, UetFrames, UetPacket
from fabrictune.topology.network import Network

CAPTURE_NAME = "capture.pcap"
PSN_LIMIT = 2**24
CNP_PRIORITY = CONTROL_PRIORITY = 6  # where ports do not keep priorities apart
DSCP_OF_PRIORITY = {3: 26, 6: 48}


class PacketType(IntEnum):
    """Types of packets, numbered as in netsim/engine/state/packet.hpp."""

    DATA = 0
    ACK = 1
    NAK = 2
    CNP = 3
    RECEIVER_NOT_READY = 4
    TRIMMED = 5
    TRIM_NACK = 6
    CREDIT = 7
    CREDIT_REQUEST = 8


def with_capture(
    record: RunRecord,
    network: Network,
    traffic: TrafficTrace,
    simulation: _engine.Simulation,
    config: PacketConfig,
    capture: CaptureConfig,
) -> RunRecord:
    """Return the record with the capture, and a finding if the capture is incomplete."""
    traffic = traffic.written_out()
    num_kept = len(simulation.capture_columns()["qp"])
    num_left_out = simulation.num_captured - num_kept
    truncated = CAPTURE_TRUNCATED.finding(
        entity=CAPTURE_NAME,
        expected=f"all {simulation.num_captured} packets",
        actual=f"only the first {num_kept} packets are captured",
        confidence=Confidence.PREDICTED,
    )
    report = run_check(
        truncated.id,
        f"{simulation.num_captured:,} packets to capture",
        [truncated] if num_left_out else [],
        expected="all packets captured",
        actual="all",
    )
    return replace(
        record.with_checks(report),
        run={**record.run, "capture": {"file": CAPTURE_NAME, "packets": num_kept, "left_out": num_left_out}},
        files={**record.files, CAPTURE_NAME: capture_file(network, traffic, simulation, config, capture)},
    )


def capture_file(
    network: Network,
    traffic: TrafficTrace,
    simulation: _engine.Simulation,
    config: PacketConfig,
    capture: CaptureConfig,
) -> bytearray:
    """Return the pcap file of the packets captured so far."""
    rows = simulation.capture_columns()
    messages = simulation.message_columns()
    flows = {qp: _flow(network, traffic, messages, qp) for qp in np.unique(rows["qp"]).tolist()}
    uet = {qp: flow.uet_frames(qp, config) for qp, flow in flows.items()} if capture.headers == "uet" else {}
    content = bytearray(pcap_header(capture.snap_bytes))
    for row in range(len(rows["qp"])):
        noted: dict[str, Any] = {name: int(column[row]) for name, column in rows.items()}
        time_ps, qp, kind = noted.pop("time_ps"), noted.pop("qp"), PacketType(noted.pop("type"))
        if uet:
            frame = flows[qp].uet_frame(uet[qp], kind, UetPacket(**noted), config)
        else:
            frame = flows[qp].frame(kind, noted["sequence"], bool(noted["is_marked"]), config)
        content += pcap_record(time_ps // 1000, frame, capture.snap_bytes)
    return content


@dataclass(frozen=True, kw_only=True)
class _Flow:
    """A queue pair's addresses and messages; number, end and bytes of a message have the same index."""

    nics: tuple[int, int]  # of the sender and the receiver
    addresses: tuple[int, int]
    queue_pair_numbers: tuple[int, int]
    source_port: int
    priority: int
    first: list[int]  # packet
    end: list[int]
    num_bytes: list[int]

    def frame(self, kind: PacketType, sequence: int, is_marked: bool, config: PacketConfig) -> bytes:
        """Return a packet's whole frame."""
        if kind == PacketType.DATA:
            return self._data(sequence, is_marked, config)
        if kind == PacketType.CNP:
            header = BaseTransportHeader(
                opcode=Opcode.CNP, destination_qpn=self.queue_pair_numbers[0], psn=0, becn=True
            )
            priority = config.queues.cnp if config.queues.priorities else CNP_PRIORITY
            return self._pack(header, 0, priority, NO_ECN, bytes(CNP_RESERVED_BYTES))
        num_done = bisect_right(self.end, sequence + (kind == PacketType.ACK))
        header = BaseTransportHeader(
            opcode=Opcode.ACKNOWLEDGE,
            destination_qpn=self.queue_pair_numbers[0],
            psn=sequence % PSN_LIMIT,
            becn=is_marked,
        )
        syndrome = {
            PacketType.ACK: Syndrome.ACK,
            PacketType.NAK: Syndrome.NAK_SEQUENCE_ERROR,
            PacketType.RECEIVER_NOT_READY: Syndrome.RNR_NAK + config.transport.rnr.timer_code,
        }[kind]
        return self._pack(header, 0, config.queues.acknowledgements, ECN_CAPABLE, pack_aeth(syndrome, num_done))

    def uet_frames(self, row: int, config: PacketConfig) -> UetFrames:
        """Return what makes its Ultra Ethernet frames."""
        addresses = [
            {
                "source_ipv4": self.addresses[1 - end],
                "destination_ipv4": self.addresses[end],
                "source_mac": _mac(self.nics[1 - end]),
                "destination_mac": _mac(self.nics[end]),
            }
            for end in range(2)
        ]
        answers = config.queues.acknowledgements
        trimmed = CONTROL_PRIORITY if config.trimming.priority is None else config.trimming.priority
        priorities = self.priority, self.priority if answers is None else answers, trimmed
        data, answer, cut = map(_dscp, priorities)
        return UetFrames(
            row=row,
            addresses=(addresses[0], addresses[1]),
            dscps=UetDscps(data=data, answer=answer, trimmed=cut),
            source_port=self.source_port,
            config=config,
        )

    def uet_frame(self, frames: UetFrames, kind: PacketType, packet: UetPacket, config: PacketConfig) -> bytes:
        """Return a packet's whole Ultra Ethernet frame."""
        if kind == PacketType.DATA:
            return frames.data(packet, self.payload_bytes(packet.sequence, config))
        if kind == PacketType.TRIMMED:
            return frames.trimmed(packet)
        if kind == PacketType.TRIM_NACK:
            return frames.trim_answer(packet)
        if kind == PacketType.ACK:
            return frames.acknowledgement(packet)
        assert kind in (PacketType.CREDIT, PacketType.CREDIT_REQUEST), "the inputs were checked"
        return frames.credit(packet, is_request=kind == PacketType.CREDIT_REQUEST)

    def payload_bytes(self, sequence: int, config: PacketConfig) -> int:
        """Return the payload of a data packet."""
        number = bisect_right(self.end, sequence)
        before_bytes = (sequence - self.first[number]) * config.mtu_bytes
        return min(self.num_bytes[number] - before_bytes, config.mtu_bytes)

    def _data(self, sequence: int, is_marked: bool, config: PacketConfig) -> bytes:
        number = bisect_right(self.end, sequence)
        is_first, is_last = sequence == self.first[number], sequence + 1 == self.end[number]
        payload_bytes = self.payload_bytes(sequence, config)
        has_immediate = is_last and config.transport.rnr.receives is not None  # no other write takes a receive
        header = BaseTransportHeader(
            opcode=_WRITES[is_first, is_last] + has_immediate,
            destination_qpn=self.queue_pair_numbers[1],
            psn=sequence % PSN_LIMIT,
            ack_request=is_last or config.ack_every_packets == 1,
            pad_count=-payload_bytes % 4,
        )
        more = pack_reth(num_bytes=self.num_bytes[number]) if is_first else b""
        more += bytes(IMMEDIATE_BYTES * has_immediate)
        ecn = CONGESTION_EXPERIENCED if is_marked else ECN_CAPABLE
        return self._pack(header, 1, None, ecn, more, bytes(payload_bytes + header.pad_count))

    def _pack(
        self, header: BaseTransportHeader, end: int, priority: int | None, ecn: int, more: bytes, payload: bytes = b""
    ) -> bytes:
        """Return a frame to the sender (0) or the receiver (1), of the queue pair's priority unless it has another."""
        priority = self.priority if priority is None else priority
        return pack_packet(
            header,
            source_ipv4=self.addresses[1 - end],
            destination_ipv4=self.addresses[end],
            source_port=self.source_port,
            dscp=_dscp(priority),
            ecn=ecn,
            extended_header=more,
            payload=payload,
            source_mac=_mac(self.nics[1 - end]),
            destination_mac=_mac(self.nics[end]),
        )


_WRITES = {  # by whether a packet is the first and the last of its message; with immediate data, one more
    (True, True): Opcode.WRITE_ONLY,
    (True, False): Opcode.WRITE_FIRST,
    (False, False): Opcode.WRITE_MIDDLE,
    (False, True): Opcode.WRITE_LAST,
}


def _flow(network: Network, traffic: TrafficTrace, messages: Mapping[str, IntArray], qp: int) -> _Flow:
    pairs, address_C = network.queue_pairs, network.fabric.nic_ipv4_C
    first_N, end_N = messages["first_sequence"], messages["end_sequence"]
    rows = np.nonzero((traffic.qp_N == qp) & (end_N > first_N))[0]
    rows = rows[np.argsort(first_N[rows])]
    nics = int(pairs.source_nic_Q[qp]), int(pairs.destination_nic_Q[qp])
    return _Flow(
        nics=nics,
        addresses=(int(address_C[nics[0]]), int(address_C[nics[1]])),
        queue_pair_numbers=(int(pairs.source_qpn_Q[qp]), int(pairs.destination_qpn_Q[qp])),
        source_port=int(pairs.source_port_Q[qp]),
        priority=int(pairs.priority_Q[qp]),
        first=first_N[rows].tolist(),
        end=end_N[rows].tolist(),
        num_bytes=traffic.bytes_N[rows].tolist(),
    )


def _dscp(priority: int) -> int:
    return DSCP_OF_PRIORITY.get(priority, 8 * priority)


def _mac(nic: int) -> bytes:
    """Return a locally administered address."""
    return b"\x02" + nic.to_bytes(5)
