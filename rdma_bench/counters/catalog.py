"""Meaning of counters by name: what is counted, in which unit, by how many bits.

Drivers and tools name alike things differently (`local_ack_timeout_err`, `to_retransmits`, `retrans_timeout_events`); a
class says what they have in common. A name that is not here has no class: it is kept and shown, never guessed.

Counters of InfiniBand's PortCounters stay at their largest value instead of wrapping; queue counters of mlx5 wrap at
2^32. Data are counted in words of four bytes, pauses of Ethernet in microseconds.

Source: Linux, drivers/infiniband/hw/{mlx5/counters.c, bnxt_re/hw_counters.c, efa/efa_verbs.c, irdma/verbs.c} and
sw/rxe/rxe_hw_counters.c; Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst and
Documentation/ABI/stable/sysfs-class-infiniband; IBTA 1.4, 16.1.3.5 and 16.1.4.11 (PortCounters, extended).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache


class CounterClass(StrEnum):
    """What a counter counts."""

    BYTES_SENT = "bytes sent"
    BYTES_RECEIVED = "bytes received"
    PACKETS_SENT = "packets sent"
    PACKETS_RECEIVED = "packets received"
    REQUESTS = "requests received"
    TIMEOUT_RETRANSMISSION = "retransmissions after a timeout"
    ADAPTIVE_RETRANSMISSION = "adaptive retransmissions"
    SLOW_RESTART = "slow restarts"
    SEQUENCE_ERROR = "packets lost or out of order"
    DUPLICATE = "duplicate requests"
    RECEIVER_NOT_READY = "receiver not ready"
    OUT_OF_BUFFER = "packets without a receive buffer"
    RETRY_EXCEEDED = "queue pairs out of retries"
    COMPLETION_ERROR = "completions with an error"
    FLUSH = "flushed completions"
    ECN_MARKED = "packets marked by ECN"
    CNP_SENT = "CNPs sent"
    CNP_HANDLED = "CNPs handled"
    CNP_IGNORED = "CNPs ignored"
    PAUSE_RECEIVED = "pauses received"
    PAUSE_SENT = "pauses sent"
    TIME_PAUSED = "time paused by the network"
    TIME_PAUSING = "time pausing the network"
    PAUSE_STORM = "pause storms"
    DISCARD = "discarded packets"
    WAIT = "ticks without credits"
    LINK_DOWN = "link downs"
    PHYSICAL_ERROR = "errors of the link"
    CORRECTED = "corrected bits"
    PCI_STALL = "stalls of PCIe"
    NOT_KNOWN = ""


@dataclass(frozen=True, kw_only=True)
class CounterMeaning:
    """Class and unit of a counter."""

    counter_class: CounterClass
    unit: str = ""
    factor: int = 1  # of the value in the unit: 4 for words of four bytes
    bits: int = 64
    saturates: bool = False  # stays at its largest value instead of wrapping


NOT_KNOWN = CounterMeaning(counter_class=CounterClass.NOT_KNOWN)

# Names of counters by class, `#` for a number.
_NAMES: dict[CounterClass, str] = {
    CounterClass.BYTES_SENT: (
        "tx_bytes tx_bytes_phy tx_prio#_bytes tx_vport_rdma_unicast_bytes tx_vport_rdma_multicast_bytes rdma_tx_bytes "
        "tx_roce_only_bytes tx_roce_bytes tx_bytes_rdma tx_rdma_bytes vport_rdma_tx_bytes"
    ),
    CounterClass.BYTES_RECEIVED: (
        "rx_bytes rx_bytes_phy rx_prio#_bytes rx_vport_rdma_unicast_bytes rx_vport_rdma_multicast_bytes rdma_rx_bytes "
        "rx_roce_only_bytes rx_roce_bytes rx_rdma_bytes vport_rdma_rx_bytes"
    ),
    CounterClass.PACKETS_SENT: (
        "tx_packets tx_packets_phy tx_prio#_packets tx_vport_rdma_unicast_packets rdma_tx_packets tx_roce_only_pkts "
        "tx_pkts tx_roce_pkts sent_pkts port_xmit_packets unicast_xmit_packets multicast_xmit_packets"
    ),
    CounterClass.PACKETS_RECEIVED: (
        "rx_packets rx_packets_phy rx_prio#_packets rx_vport_rdma_unicast_packets rdma_rx_packets rx_roce_only_pkts "
        "rx_pkts rx_roce_pkts rcvd_pkts port_rcv_packets unicast_rcv_packets multicast_rcv_packets"
    ),
    CounterClass.TIMEOUT_RETRANSMISSION: "to_retransmits completer_retry_err retrans_timeout_events",
    CounterClass.SEQUENCE_ERROR: "seq_err_naks_rcvd oos_drop_count missing_resp rcvd_seq_err out_of_seq_request",
    CounterClass.DUPLICATE: "dup_req",
    CounterClass.RECEIVER_NOT_READY: "rnr_naks_rcvd rcvd_rnr_err send_rnr_err",
    CounterClass.OUT_OF_BUFFER: "rx_out_of_buffer rx_steer_missed_packets",
    CounterClass.RETRY_EXCEEDED: "max_retry_exceeded retry_exceeded_err retry_exceeded",
    CounterClass.ECN_MARKED: "np_ecn_marked_roce_packets rx_prio#_marked cc_rx_ce_pkts rx_ecn_marked_pkts RxECNMrkd",
    CounterClass.CNP_SENT: "np_cnp_sent cc_tx_cnp_pkts tx_cnp_pkts cnpSent",
    CounterClass.CNP_HANDLED: "rp_cnp_handled cc_rx_cnp_pkts rx_cnp_pkts cnpHandled",
    CounterClass.CNP_IGNORED: "rp_cnp_ignored cnpIgnored",
    CounterClass.PAUSE_RECEIVED: "rx_prio#_pause rx_pause_ctrl_phy rx_global_pause rx_pause rx_pfc_frames",
    CounterClass.PAUSE_SENT: "tx_prio#_pause tx_pause_ctrl_phy tx_global_pause tx_pause tx_pfc_frames",
    CounterClass.TIME_PAUSED: "rx_prio#_pause_duration rx_global_pause_duration rx_pause_duration",
    CounterClass.TIME_PAUSING: "tx_prio#_pause_duration tx_global_pause_duration tx_pause_duration",
    CounterClass.PAUSE_STORM: "tx_pause_storm_warning_events tx_pause_storm_error_events",
    CounterClass.DISCARD: (
        "rx_discards_phy tx_discards_phy rx_prio#_discards rx_prio#_buf_discard rx_prio#_cong_discard rx_roce_discards "
        "tx_roce_discards rx_dropped tx_dropped rx_oversize_pkts_phy rx_oversize_pkts_buffer rx_oversize_pkts_sw_drop "
        "rx_drops port_rcv_drops rx_discards tx_discards"
    ),
    CounterClass.LINK_DOWN: "link_down_events_phy carrier_down_count",
    CounterClass.PHYSICAL_ERROR: (
        "rx_crc_errors_phy rx_symbol_err_phy rx_pcs_symbol_err_phy rx_err_lane_#_phy rx_in_range_len_errors_phy "
        "rx_undersize_pkts_phy rx_fragments_phy rx_jabbers_phy rx_icrc_encapsulated rx_roce_errors rx_crc_errors "
        "rx_frame_errors tx_errors_phy rx_pci_signal_integrity tx_pci_signal_integrity"
    ),
    CounterClass.CORRECTED: "rx_corrected_bits_phy rx_corrected_bits_total_phy",
    CounterClass.PCI_STALL: (
        "outbound_pci_stalled_rd outbound_pci_stalled_wr outbound_pci_stalled_rd_events "
        "outbound_pci_stalled_wr_events outbound_pci_buffer_overflow"
    ),
}

# Queue counters of mlx5, which wrap at 2^32; switchdev puts `vport_` before them.
_MLX5_QUEUE_COUNTERS: dict[CounterClass, str] = {
    CounterClass.REQUESTS: "rx_write_requests rx_read_requests rx_atomic_requests rx_dct_connect",
    CounterClass.TIMEOUT_RETRANSMISSION: "local_ack_timeout_err",
    CounterClass.ADAPTIVE_RETRANSMISSION: "roce_adp_retrans roce_adp_retrans_to",
    CounterClass.SLOW_RESTART: "roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans",
    CounterClass.SEQUENCE_ERROR: "out_of_sequence packet_seq_err implied_nak_seq_err",
    CounterClass.DUPLICATE: "duplicate_request",
    CounterClass.RECEIVER_NOT_READY: "rnr_nak_retry_err",
    CounterClass.OUT_OF_BUFFER: "out_of_buffer",
    CounterClass.RETRY_EXCEEDED: "req_transport_retries_exceeded req_rnr_retries_exceeded",
    CounterClass.COMPLETION_ERROR: (
        "req_cqe_error resp_cqe_error req_remote_invalid_request req_remote_access_errors resp_remote_access_errors "
        "resp_local_length_error"
    ),
    CounterClass.FLUSH: "req_cqe_flush_error resp_cqe_flush_error",
}

# InfiniBand's PortCounters as sysfs and as perfquery name them, with their bits; all stay at their largest value.
_PORT_COUNTERS: tuple[tuple[CounterClass, str, str, int], ...] = (
    (CounterClass.PHYSICAL_ERROR, "symbol_error", "SymbolErrorCounter", 16),
    (CounterClass.LINK_DOWN, "link_error_recovery", "LinkErrorRecoveryCounter", 8),
    (CounterClass.LINK_DOWN, "link_downed", "LinkDownedCounter", 8),
    (CounterClass.PHYSICAL_ERROR, "port_rcv_errors", "PortRcvErrors", 16),
    (CounterClass.PHYSICAL_ERROR, "port_rcv_remote_physical_errors", "PortRcvRemotePhysicalErrors", 16),
    (CounterClass.DISCARD, "port_rcv_switch_relay_errors", "PortRcvSwitchRelayErrors", 16),
    (CounterClass.DISCARD, "port_xmit_discards", "PortXmitDiscards", 16),
    (CounterClass.DISCARD, "port_xmit_constraint_errors", "PortXmitConstraintErrors", 8),
    (CounterClass.DISCARD, "port_rcv_constraint_errors", "PortRcvConstraintErrors", 8),
    (CounterClass.PHYSICAL_ERROR, "local_link_integrity_errors", "LocalLinkIntegrityErrors", 4),
    (CounterClass.PHYSICAL_ERROR, "excessive_buffer_overrun_errors", "ExcessiveBufferOverrunErrors", 4),
    (CounterClass.DISCARD, "VL15_dropped", "VL15Dropped", 16),
    (CounterClass.DISCARD, "qp1_dropped", "QP1Dropped", 16),
)
_PERFQUERY_PACKETS = {
    CounterClass.PACKETS_SENT: "PortXmitPkts PortUnicastXmitPkts PortMulticastXmitPkts",
    CounterClass.PACKETS_RECEIVED: "PortRcvPkts PortUnicastRcvPkts PortMulticastRcvPkts",
}
_WORDS = {
    CounterClass.BYTES_SENT: "port_xmit_data PortXmitData",
    CounterClass.BYTES_RECEIVED: "port_rcv_data PortRcvData",
}
_UNIT_OF = {
    CounterClass.TIME_PAUSED: "us",
    CounterClass.TIME_PAUSING: "us",
    CounterClass.WAIT: "ticks",
    CounterClass.BYTES_SENT: "bytes",
    CounterClass.BYTES_RECEIVED: "bytes",
}


def meaning_of(name: str, *, is_extended: bool | None = None) -> CounterMeaning:
    """Return the meaning of a counter's name, NOT_KNOWN for one that no driver above has.

    `is_extended` says for counters of perfquery whether they were asked for with -x: then all have 64 bits, else those
    of data, packets and waits have 32 and stay at their largest value.
    """
    table = _table()
    known = table.get(name) or table.get(re.sub(r"[0-9]+", "#", name), NOT_KNOWN)
    if is_extended is None or known is NOT_KNOWN:
        return known
    if is_extended:
        return replace(known, bits=64, saturates=False)
    return replace(known, bits=min(known.bits, 32), saturates=True)


@cache
def _table() -> dict[str, CounterMeaning]:
    return dict(_rows())


def _rows() -> Iterator[tuple[str, CounterMeaning]]:
    for counter_class, names in (*_NAMES.items(), *_PERFQUERY_PACKETS.items()):
        for name in names.split():
            yield name, _meaning(counter_class)
    for counter_class, names in _MLX5_QUEUE_COUNTERS.items():
        for name in names.split():
            yield name, _meaning(counter_class, bits=32)
            yield f"vport_{name}", _meaning(counter_class, bits=32)
    for counter_class, of_sysfs, of_perfquery, bits in _PORT_COUNTERS:
        yield of_sysfs, _meaning(counter_class, bits=bits, saturates=True)
        yield of_perfquery, _meaning(counter_class, bits=bits, saturates=True)
    for counter_class, names in _WORDS.items():
        for name in names.split():
            yield name, _meaning(counter_class, factor=4)
    yield "port_xmit_wait", _meaning(CounterClass.WAIT)
    yield "PortXmitWait", _meaning(CounterClass.WAIT)


def _meaning(counter_class: CounterClass, **more: int) -> CounterMeaning:
    bits, factor, saturates = more.get("bits", 64), more.get("factor", 1), bool(more.get("saturates"))
    unit = _UNIT_OF.get(counter_class, "")
    return CounterMeaning(counter_class=counter_class, unit=unit, factor=factor, bits=bits, saturates=saturates)
