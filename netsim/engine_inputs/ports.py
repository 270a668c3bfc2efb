"""Ports as an engine reads them: rates and delays it can hold, and the thresholds of the buffer behind each.

Shapes: P ports, U kinds of links.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.engine_inputs.limits import require_ids
from fabrictune.netsim.headroom import pfc_headroom_bytes, pfc_response_ps
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.lookup import find_node

MAX_PORT_DELAY_PS = 2**32 - 1


def port_arrays(fabric: Fabric, config: PacketConfig) -> dict[str, NDArray[Any]]:
    """Return the arrays of ports, shape (P,) each.

    Raises InputError for ports an engine cannot hold, thresholds that no buffer has room for, and a slow host that is
    not there.
    """
    _check_ports(fabric)
    drain_rate_P = _drain_rates_bps(fabric, config)
    return {
        "port_rate_bps": fabric.port_rate_bps_P,
        "port_delay_ps": fabric.port_delay_ps_P,
        "port_peer": fabric.port_peer_P,
        "port_node": fabric.port_node_P,
        "port_is_host": (fabric.port_nic_P != NO_NIC).astype(np.int64),
        **_thresholds(fabric, config, is_before_nic_P=drain_rate_P > 0),
        "drain_rate": drain_rate_P,
        "loss_fraction": np.full(fabric.num_ports, config.loss_fraction),
        "grant_rate": _grant_rates_bps(fabric, config),
    }


def _check_ports(fabric: Fabric) -> None:
    """Raise InputError for ports an engine cannot hold."""
    require_ids(fabric.num_ports, "ports")
    if (fabric.port_delay_ps_P > MAX_PORT_DELAY_PS).any():
        port = int(np.argmax(fabric.port_delay_ps_P))
        raise InputError(
            Mistake(
                where=fabric.link_label(port),
                found=f"a delay of {int(fabric.port_delay_ps_P[port])} ps",
                allowed=f"up to {MAX_PORT_DELAY_PS} ps (858 km of cable)",
            )
        )


def _drain_rates_bps(fabric: Fabric, config: PacketConfig) -> IntArray:
    """Return how fast the host behind each port takes what comes through it, 0 for at once; PCIe is a limit as well."""
    host_P = fabric.port_node_P[fabric.port_peer_P]
    is_slow_P = fabric.port_nic_P[fabric.port_peer_P] != NO_NIC
    if config.nic.slow_hosts:
        is_slow_P &= np.isin(
            host_P, [find_node(fabric, name, where="nic.slow_hosts") for name in config.nic.slow_hosts]
        )
    rate_P = np.where(is_slow_P, config.nic.drain_rate_bps or 0, 0)
    if config.host.pcie_generation is None:
        return rate_P
    limit_bps = config.host.write_rate_bps
    is_before_nic_P = fabric.port_nic_P[fabric.port_peer_P] != NO_NIC
    return np.where(is_before_nic_P, np.where(rate_P > 0, np.minimum(rate_P, limit_bps), limit_bps), 0)


def _grant_rates_bps(fabric: Fabric, config: PacketConfig) -> IntArray:
    """Return how fast the NIC behind each port grants credits, empty where there are none."""
    if not config.transport.credits.enabled:
        return np.empty(0, np.int64)
    rate_P: IntArray = (fabric.port_rate_bps_P * config.transport.credits.rate_fraction).astype(np.int64)
    return np.maximum(rate_P, 1)


def _thresholds(fabric: Fabric, config: PacketConfig, *, is_before_nic_P: BoolArray) -> dict[str, IntArray]:
    """Return the thresholds of the ingress buffer behind each port, one computation per kind of link.

    Those of a NIC's buffer are of use only where hosts do not take packets at once.
    """
    link_P3 = np.stack([fabric.port_rate_bps_P, fabric.port_delay_ps_P, is_before_nic_P], axis=1)
    link_U3, kind_P = np.unique(link_P3, axis=0, return_inverse=True)
    buffer_bytes, xoff_bytes = config.nic.receive_buffer_bytes, config.nic.xoff_bytes
    nic_pfc = replace(config.pfc, buffer_bytes=buffer_bytes, xoff_bytes=xoff_bytes, xon_bytes=None)
    switch_pfc = replace(config.pfc, buffer_bytes=config.buffer.size_bytes or config.pfc.buffer_bytes)
    rows = [
        _buffer(rate_bps, delay_ps, nic_pfc if is_before_nic else switch_pfc, config.full_frame_bytes, is_before_nic)
        for rate_bps, delay_ps, is_before_nic in link_U3.tolist()
    ]
    table_U4 = np.array(rows, np.int64).reshape(-1, 4)
    names = ("pause_above", "resume_below", "ingress_limit", "pause_response")
    return {name: table_U4[kind_P.ravel(), column].copy() for column, name in enumerate(names)}


def _buffer(
    rate_bps: int, delay_ps: int, pfc: PfcConfig, frame_bytes: int, is_before_nic: bool
) -> tuple[int, int, int, int]:
    """Return pause_above, resume_below, ingress_limit and pause_response of one kind of link."""
    response_ps = pfc_response_ps(rate_bps) if pfc.response_ns is None else pfc.response_ns * PS_PER_NS
    if not pfc.enabled:
        return pfc.buffer_bytes, 0, pfc.buffer_bytes, response_ps
    headroom_bytes = pfc.headroom_bytes
    if headroom_bytes is None:
        headroom_bytes = pfc_headroom_bytes(
            rate_bps=rate_bps, delay_ps=delay_ps, full_frame_bytes=frame_bytes, response_ps=response_ps
        )
    xoff_bytes = pfc.buffer_bytes - headroom_bytes if pfc.xoff_bytes is None else pfc.xoff_bytes
    xon_bytes = xoff_bytes * 4 // 5 if pfc.xon_bytes is None else pfc.xon_bytes
    pause_above = xoff_bytes - frame_bytes
    if pause_above < 0 or xon_bytes > xoff_bytes:
        raise InputError(
            Mistake(
                where="nic" if is_before_nic else "pfc",
                found=(
                    f"{pfc.buffer_bytes} B of buffer, {headroom_bytes} B of headroom, xoff at {xoff_bytes} B"
                    f" and xon at {xon_bytes} B, on a link of {rate_bps} bps and {delay_ps} ps"
                ),
                allowed=f"xoff of a full frame ({frame_bytes} B) or more, and xon not above it",
                next_step="raise nic.receive_buffer or set nic.xoff"
                if is_before_nic
                else "raise pfc.buffer or set pfc.xoff and pfc.xon",
            )
        )
    return pause_above, min(xon_bytes, pause_above), xoff_bytes + headroom_bytes, response_ps
