"""Calibration of this machine's loopback: the latency of a message, and its rate from then on.

They are all that the simulator knows of this machine. They are fitted to exchanges: t(bytes) = latency + bytes/rate.

Shapes: E sizes of exchanges, K repetitions.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.measurement.alpha_beta_fit import fit_line
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S, format_duration
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric

MOST_LATENCY_PS = 8 * 10**9  # what takes longer waits for a processor, not for the network


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The loopback as a link."""

    latency_ps: int
    rate_bps: int

    def message_ps(self, num_bytes: float) -> float:
        """Return the time of one message."""
        return self.latency_ps + num_bytes * BITS_PER_BYTE * PS_PER_S / self.rate_bps


def calibrate(bytes_E: IntArray, duration_ps_EK: IntArray) -> Calibration:
    """Return the line through the medians of two sizes or more; raises UnavailableError where none fits."""
    median_ps_E = np.median(duration_ps_EK, axis=1)
    line = fit_line(bytes_E, median_ps_E)
    if line.beta <= 0 or line.alpha > MOST_LATENCY_PS:
        shown = ", ".join(f"{size} B {time / 1e6:.0f} us" for size, time in zip(bytes_E, median_ps_E, strict=True))
        raise UnavailableError(
            Mistake(
                where="calibration",
                found=f"no latency and rate fit these exchanges: {shown}",
                allowed=f"times that rise with size, from a latency of at most {format_duration(MOST_LATENCY_PS)}",
                next_step="run again while the machine does nothing else",
            )
        )
    return Calibration(latency_ps=max(0, round(line.alpha)), rate_bps=round(BITS_PER_BYTE * PS_PER_S / line.beta))


def loopback_fabric(calibration: Calibration, mtu_bytes: int) -> Fabric:
    """Return two hosts on one switch between which a message takes as long as on the calibrated loopback.

    The switch stores a packet before it passes it on, so the cables have the latency less one packet's time.
    """
    packet_ps = calibration.message_ps(mtu_bytes) - calibration.latency_ps
    delay_ps = max(0, round((calibration.latency_ps - packet_ps) / 2))
    draft = FabricDraft("loopback")
    hosts = [draft.add_host(name) for name in ("rank0", "rank1")]
    switch = draft.add_switch("loopback", tier=1)
    for number, host in enumerate(hosts):
        draft.add_link((host, "lo"), (switch, f"port{number}"), rate_bps=calibration.rate_bps, delay_ps=delay_ps)
    return draft.finish()
