"""The link that defaults of laws and switches fit, from the paths that flows take, and marking that fits it."""

import numpy as np

from fabrictune.cc.link_rules import Link, MarkingRule
from fabrictune.foundation.settings.quantities import format_setting, key_of
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig
from fabrictune.netsim.engine_inputs.flows import line_rates_bps, unloaded_round_trips_ps
from fabrictune.netsim.engine_inputs.ports import port_arrays
from fabrictune.topology.fabric import NO_NIC
from fabrictune.topology.network import NO_PORT, Network


def link_of(network: Network, config: PacketConfig) -> Link | None:
    """Return the slowest NIC and the longest unloaded round trip of any flow; None where no flow has a path.

    Raises InputError as `port_arrays` does.
    """
    fabric, path_QDH = network.fabric, network.epochs[0].port_QDH.astype(np.int64)
    path_QDH = path_QDH[(path_QDH[:, :, 0] != NO_PORT).all(axis=1)]
    if not len(path_QDH):
        return None
    ports = port_arrays(fabric, config)
    used = np.unique(path_QDH[:, 0][path_QDH[:, 0] != NO_PORT])
    into_switch = used[fabric.port_nic_P[fabric.port_peer_P[used]] == NO_NIC]
    return Link(
        rate_bps=float(line_rates_bps(fabric, path_QDH).min()),
        base_rtt_ps=int(unloaded_round_trips_ps(fabric, path_QDH, config, drain_rate_P=ports["drain_rate"]).max()),
        num_hops=int((path_QDH[:, 0] != NO_PORT).sum(axis=1).max()),
        mtu_bytes=config.mtu_bytes,
        queue_limit_bytes=int(ports["pause_above"][into_switch].min(initial=config.pfc.buffer_bytes)),
    )


def fit_marking(config: PacketConfig, rule: MarkingRule, link: Link) -> PacketConfig:
    """Return the configuration with what its marking leaves open as the rule has it; raises InputError.

    Marks begin at no more than half of what an ingress port holds before it pauses: before the pause, though the port
    feeds two queues (Zhu et al., SIGCOMM 2015, section 4: ECN before PFC).
    """
    kmin_bytes = round(min(rule.kmin_bytes(link), link.queue_limit_bytes / 2))
    kmax_bytes = max(round(kmin_bytes * rule.kmax_factor), kmin_bytes + 1)

    def filled(ecn: EcnConfig) -> EcnConfig:
        return ecn.filled(kmin_bytes=kmin_bytes, kmax_bytes=kmax_bytes, pmax_fraction=rule.pmax_fraction)

    return config.with_marking(filled)


def marking_note(config: PacketConfig, fitted: PacketConfig, rule: MarkingRule, link: Link) -> str:
    """Return the marking that was derived, and how; "" where none was."""
    before, after = config.ecn, fitted.ecn
    if not after.enabled or before == after:
        return ""
    names = [name for name in ("kmin_bytes", "kmax_bytes", "pmax_fraction") if getattr(before, name) is None]
    shown = ", ".join(f"{key_of(name)} {format_setting(name, getattr(after, name))}" for name in names)
    is_lower = rule.kmin_bytes(link) > link.queue_limit_bytes / 2
    lowered = ", but kmin at most half of what a port holds before it pauses" if is_lower else ""
    return f"engine.ecn {shown}: {rule.text}{lowered} ({rule.source})"
