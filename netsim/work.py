"""Estimate of a run's work before it starts: packets over links, and the time they take.

Every packet sent once, with its acknowledgement; losses, notifications and pauses come on top. What does not fit into
memory is refused in netsim/memory.py.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from fabrictune.cc.interface import NEVER
from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.units import PS_PER_S
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.engine_inputs.search import packet_hops

HOPS_PER_S = 10e6  # slow for the engine: 16 to 24 million on an idle core (benchmarks/packet_engine.py)
SAMPLES_PER_S = 50e6
LONG_RUN_S = 60


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a run has to do at least."""

    packet_hops: float
    samples: float  # of ports and queue pairs

    @property
    def duration_s(self) -> float:
        """Time of an ordinary core."""
        return self.packet_hops / HOPS_PER_S + self.samples / SAMPLES_PER_S


def estimated_work(inputs: EngineInputs) -> Work:
    """Return the least work of a run, as far as its time limit lets it come."""
    settings = inputs.settings
    num_packet_hops = packet_hops(inputs.totals.packets_Q, inputs["flow"]["num_hops"], settings["ack_every_packets"])
    least_ps = least_time_ps(inputs)
    reached = 1.0 if settings["time_limit_ps"] == NEVER else min(1.0, settings["time_limit_ps"] / max(least_ps, 1.0))
    probed = len(inputs["probed_port"]) + len(inputs["probed_flow"])
    interval_ps = settings["probe_interval_ps"]
    samples = 0.0 if interval_ps == NEVER else reached * least_ps / interval_ps * probed
    return Work(packet_hops=num_packet_hops * reached, samples=min(samples, 2.0 * settings["max_samples"]))


def least_time_ps(inputs: EngineInputs) -> float:
    """Return the simulated time that the busiest NIC needs to send or receive, or the last start if later."""
    flow, bytes_Q, last_start_ps = inputs["flow"], inputs.totals.bytes_Q, float(inputs.totals.last_start_ps)
    if not (inputs.totals.packets_Q > 0).any():
        return last_start_ps
    path_QDH = inputs["path"][: len(flow) * 2 * inputs.settings["path_stride"]].reshape(len(flow), 2, -1)
    ends_2Q = (path_QDH[:, 0, 0], path_QDH[np.arange(len(flow)), 0, np.maximum(flow["num_hops"], 1) - 1])
    rates_P = inputs["port_rate_bps"]
    busiest_s = max(
        float((8.0 * np.bincount(port_Q[bytes_Q > 0], bytes_Q[bytes_Q > 0], minlength=len(rates_P)) / rates_P).max())
        for port_Q in ends_2Q
    )
    return max(busiest_s * PS_PER_S, last_start_ps)


def warn_of_long_run(inputs: EngineInputs) -> None:
    """Warn with the estimated time where a run takes minutes or more."""
    work = estimated_work(inputs)
    if work.duration_s > LONG_RUN_S:
        warnings.warn(
            f"a run of about {work.packet_hops:.2g} packets over links and {work.samples:.2g} probe samples: "
            f"{_readable(work.duration_s)} or more; a larger engine.mtu, less traffic, a longer probe.interval"
            " or engine.time_limit make it shorter",
            FabrictuneWarning,
            stacklevel=3,
        )


def _readable(duration_s: float) -> str:
    minutes = math.ceil(duration_s / 60)
    if minutes < 120:
        return f"{minutes} minutes"
    return f"{minutes / 60:.0f} hours" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"
