"""Numbers that hold for a whole run, by the names the engine has for them (netsim/engine/state/settings.inl)."""

from typing import Any

import numpy as np

from fabrictune.cc.interface import NEVER
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.retransmission import NEVER_PS, RNR_RETRIES_FOREVER, rnr_wait_ps
from fabrictune.foundation.seeds import stream_key
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import TrimmingConfig
from fabrictune.netsim.config.transport import RnrConfig, TransportConfig
from fabrictune.netsim.engine_inputs.path_choice import path_choice_settings
from fabrictune.netsim.engine_inputs.priorities import marking, priority_settings
from fabrictune.netsim.engine_inputs.probes import MAX_SAMPLES
from fabrictune.netsim.headroom import PAUSE_FRAME_BYTES

AUDITED_FRACTION = 0.02  # of spans at mean rates
FREE_SEARCH_VALUES = 2**16  # about what eight thousand events cost
SEARCH_EVENTS_PER_PAIR = 512  # what repeats has come again after some fifteen packets
MOST_VALUES_KEPT = 2**22  # 32 MiB; what goes beyond these two is not skipped
MOST_LOGGED = 2**20  # some 60 MiB


def settings(config: PacketConfig, seed: int, probe: ProbeConfig | None) -> dict[str, Any]:
    """Return the settings; times in picoseconds."""
    return {
        "mtu_bytes": config.mtu_bytes,
        "wire_overhead_bytes": config.wire_overhead_bytes,
        "ack_bytes": config.ack_bytes,
        "pause_frame_bytes": PAUSE_FRAME_BYTES,
        "ack_every_packets": config.ack_every_packets,
        "acknowledgements_are_data": config.queues.acknowledgement_class == "data",
        "marking": marking(config.ecn),
        "is_pfc_enabled": config.pfc.enabled,
        **_trimming_settings(config.trimming),
        "cnp_interval_ps": config.cnp.interval_ns * PS_PER_NS,
        "cnp_delay_ps": (config.cnp.generation_delay_ns + config.cnp.handling_delay_ns) * PS_PER_NS,
        "endpoint_delay_ps": config.nic.endpoint_delay_ns * PS_PER_NS,
        "endpoint_jitter_ps": config.nic.endpoint_jitter_ns * PS_PER_NS,
        "endpoint_key": stream_key(seed, "netsim", "endpoints") % 2**64,
        "window_packets": config.transport.window_packets,
        "acknowledge_after_bytes": config.transport.acknowledge_after_bytes if config.transport.coalesces else 0,
        "grant_bytes": config.transport.credits.grant_packets * config.full_frame_bytes,
        **_rnr_settings(config.transport.rnr),
        "nvlink_rate_bps": config.nvlink_rate_bps,
        "time_limit_ps": NEVER if config.time_limit_ns is None else config.time_limit_ns * PS_PER_NS,
        "probe_interval_ps": NEVER if probe is None or probe.interval_ns is None else probe.interval_ns * PS_PER_NS,
        "max_samples": MAX_SAMPLES,
        "random_key": stream_key(seed, "netsim", "ports") % 2**64,
        "fault_key": stream_key(seed, "netsim", "faults") % 2**64,
        "skips_at_mean_rates": config.skip == "bounded",
        "skip_precision": config.skip_precision_fraction,
        "audited_fraction": AUDITED_FRACTION,
        "mean_rate_bias": 0.0,
        "num_threads": config.threads,
        "free_search_values": FREE_SEARCH_VALUES,
        "search_events_per_pair": SEARCH_EVENTS_PER_PAIR,
        "most_values_kept": MOST_VALUES_KEPT,
        "most_logged": MOST_LOGGED,
        "first_packet_count": 0,
        "force_full": False,
        **path_choice_settings(config.path_choice, seed),
        **priority_settings(config),
    }


def _trimming_settings(trimming: TrimmingConfig) -> dict[str, Any]:
    return {
        "trim_above_bytes": trimming.threshold_bytes if trimming.enabled else 0,
        "last_hop_trim_above_bytes": trimming.at_last_hop_bytes,
        "trimmed_bytes": trimming.trimmed_bytes,
    }


def _rnr_settings(rnr: RnrConfig) -> dict[str, Any]:
    return {
        "num_receives": rnr.receives or 0,
        "replenish_ps": rnr.replenish_ns * PS_PER_NS,
        "rnr_wait_ps": rnr_wait_ps(rnr.timer_code),
        "rnr_retries": rnr.retries,
        "rnr_retries_are_limited": rnr.retries < RNR_RETRIES_FOREVER,
    }


def retransmission_waits(transport: TransportConfig) -> IntArray:
    """Return the waits in picoseconds, the engine's NEVER for one that does not end."""
    return np.array([NEVER if wait_ps >= NEVER_PS else wait_ps for wait_ps in transport.waits_ps], np.int64)


def reorder_windows(base_rtt_ps_Q: IntArray, transport: TransportConfig) -> IntArray:
    """Return how far each queue pair's packets may overtake one another, in picoseconds; none under go-back-N."""
    if transport.reliability == "go-back-n":
        return np.empty(0, np.int64)
    if transport.reorder_window_ns is None:
        return base_rtt_ps_Q.copy()
    return np.full(len(base_rtt_ps_Q), transport.reorder_window_ns * PS_PER_NS)
