"""Captured queue pairs and places."""

from typing import Any

import numpy as np

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.netsim.config.capture import RECEIVER, SENDER, CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.lookup import find_node, find_port
from fabrictune.topology.network import Network

MAX_MESSAGE_BYTES = 2**31  # InfiniBand 1.4, section 9.3.3.1
_SENDER, _RECEIVER, _PORT = range(3)


def capture_settings(fabric: Fabric, capture: CaptureConfig | None) -> dict[str, Any]:
    """Return the settings of a capture; raises InputError for a port that is not there."""
    at = SENDER if capture is None else capture.at
    is_at_port = at not in (SENDER, RECEIVER)
    return {
        "capture_at": {SENDER: _SENDER, RECEIVER: _RECEIVER}.get(at, _PORT),
        "capture_port": find_port(fabric, at, where="capture.at") if is_at_port else 0,
        "max_captured": 0 if capture is None else capture.max_packets,
    }


def check_captured_messages(largest_bytes: int, capture: CaptureConfig | None) -> None:
    """Raise InputError for a message that the RDMA extended header cannot give the length of."""
    if capture is not None and largest_bytes > MAX_MESSAGE_BYTES:
        raise InputError(
            Mistake(
                where="capture",
                found=f"a message of {largest_bytes} B",
                allowed=f"up to {MAX_MESSAGE_BYTES} B, as InfiniBand's headers have it",
                next_step="make the messages smaller, or leave out the capture",
            )
        )


def check_captured_packets(config: PacketConfig, law: CompiledLaw, capture: CaptureConfig | None) -> None:
    """Raise InputError for packets that a capture has no frame for."""
    if capture is None:
        return
    transport = config.transport
    refused = {
        "rocev2": {
            "switches that trim": config.trimming.enabled,
            "receiver credits": transport.credits.enabled,
            "coalesced acknowledgements": transport.coalesces,
        },
        "uet": {
            f"reliability {transport.reliability}": not transport.is_selective,
            "receives that are counted": transport.rnr.receives is not None,
            f"congestion notifications, which the law {law.name} reads": "on_cnp" in law.handler_address,
        },
    }
    others = {"rocev2": ("RoCE", "uet"), "uet": ("Ultra Ethernet", "rocev2")}
    found = [what for what, is_there in refused[capture.headers].items() if is_there]
    if found:
        standard, other = others[capture.headers]
        raise InputError(
            Mistake(
                where="capture",
                found=" and ".join(found),
                allowed=f"packets as {standard} has them",
                next_step=f"leave out the capture, or try `headers: {other}`",
            )
        )


def captured_flows(network: Network, capture: CaptureConfig | None) -> IntArray:
    """Return for each queue pair whether it is captured, no rows without a capture; raises InputError."""
    if capture is None:
        return np.zeros(0, np.int64)
    pairs, fabric = network.queue_pairs, network.fabric
    if not capture.flows and not capture.hosts:
        return np.ones(len(pairs), np.int64)
    if max(capture.flows, default=0) >= len(pairs):
        raise InputError(
            Mistake(
                where="capture.flows",
                found=f"{max(capture.flows)}",
                allowed=f"a row of the network's {len(pairs)} queue pairs",
            )
        )
    hosts = [find_node(fabric, name, where="capture.hosts") for name in capture.hosts]
    host_Q2 = fabric.nic_host_C[np.stack([pairs.source_nic_Q, pairs.destination_nic_Q], axis=1)]
    is_captured_Q = np.isin(host_Q2, hosts).any(axis=1) | np.isin(np.arange(len(pairs)), capture.flows)
    return np.array(is_captured_Q, np.int64)
