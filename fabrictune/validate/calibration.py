"""Calibration of this machine: what the parts of a collective cost, from probes beside the training.

Times of one probe over sizes are a curve, straight between measured sizes: the rate of an exchange falls with its size,
so one line would be wrong by a factor. For the simulator the loopback is a link with the latency of the smallest
exchange and the best rate of any; what an exchange takes beyond these is added beside it.

Shapes: P probes, K rounds, E sizes of a curve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S, format_bytes, format_duration
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric
from fabrictune.validate.local_probes import CALLS

MOST_LATENCY_PS = 8 * 10**9  # what takes longer waits for a processor, not for the network


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Times over sizes; they never fall as the size grows."""

    bytes_E: IntArray  # ascending
    ps_E: FloatArray

    def at(self, num_bytes: float) -> float:
        """Return the time of a size; beyond the largest as the last stretch goes on, below the smallest its time."""
        sizes, times = self.bytes_E, self.ps_E
        if num_bytes > sizes[-1]:
            slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
            return float(times[-1] + slope * (num_bytes - sizes[-1]))
        return float(np.interp(num_bytes, sizes, times))

    def beyond_smallest_ps(self, num_bytes: float) -> float:
        """Return what this size takes more than the smallest."""
        return self.at(num_bytes) - float(self.ps_E[0])


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The machine's parts."""

    exchange: Curve
    sum: Curve  # over the bytes of both halves
    copy: Curve
    page_ps: float  # of a new page, beyond the copy into it
    call_ps: Mapping[str, float]  # of a collective of 16 B, by its name

    @property
    def latency_ps(self) -> int:
        """Return the time of the smallest exchange."""
        return round(float(self.exchange.ps_E[0]))

    @property
    def rate_bps(self) -> int:
        """Return the best rate beyond the latency of exchanges that take twice as long; of the largest, if none do."""
        sizes = self.exchange.bytes_E - self.exchange.bytes_E[0]
        times = self.exchange.ps_E - self.exchange.ps_E[0]
        is_long_E = times > self.exchange.ps_E[0]
        is_long_E[-1] = True
        bytes_per_ps = float(np.max(sizes[is_long_E] / times[is_long_E]))
        return round(bytes_per_ps * BITS_PER_BYTE * PS_PER_S)


def calibrate(probe_P: Sequence[str], bytes_P: IntArray, probe_ps_PK: IntArray, page_bytes: int) -> Calibration:
    """Return the medians of all rounds as a calibration."""
    median_ps_P = np.median(probe_ps_PK, axis=1)
    name_P = np.array(probe_P)

    def curve(name: str) -> Curve:
        rows = np.flatnonzero(name_P == name)
        rows = rows[np.argsort(bytes_P[rows], kind="stable")]
        return Curve(bytes_E=bytes_P[rows], ps_E=np.maximum.accumulate(median_ps_P[rows]))

    def one(name: str) -> float:
        return float(median_ps_P[name_P == name][0])

    copy, fresh_bytes = curve("copy"), float(bytes_P[name_P == "fresh_copy"][0])
    return Calibration(
        exchange=curve("exchange"),
        sum=curve("sum"),
        copy=copy,
        page_ps=max(0.0, one("fresh_copy") - copy.at(fresh_bytes)) * page_bytes / fresh_bytes,
        call_ps={call: one(call) for call in CALLS},
    )


def check_calibration(calibration: Calibration) -> None:
    """Raise UnavailableError where the exchanges do not tell a latency and a rate."""
    exchange = calibration.exchange
    if exchange.ps_E[-1] > exchange.ps_E[0] and exchange.ps_E[0] <= MOST_LATENCY_PS:
        return
    shown = ", ".join(
        f"{format_bytes(size)} {format_duration(time_ps)}"
        for size, time_ps in zip(exchange.bytes_E.tolist(), exchange.ps_E.tolist(), strict=True)
    )
    raise UnavailableError(
        Mistake(
            where="calibration",
            found=f"no latency and rate fit these exchanges: {shown}",
            allowed=f"times that rise with size, from a latency of at most {format_duration(MOST_LATENCY_PS)}",
            next_step="run again while the machine does nothing else",
        )
    )


def loopback_fabric(calibration: Calibration, mtu_bytes: int) -> Fabric:
    """Return two hosts on one switch between which a message takes the latency and its bytes at the rate.

    The switch stores a packet before it passes it on, so the cables have the latency less one packet's time.
    """
    packet_ps = mtu_bytes * BITS_PER_BYTE * PS_PER_S / calibration.rate_bps
    delay_ps = max(0, round((calibration.latency_ps - packet_ps) / 2))
    draft = FabricDraft("loopback")
    hosts = [draft.add_host(name) for name in ("rank0", "rank1")]
    switch = draft.add_switch("loopback", tier=1)
    for number, host in enumerate(hosts):
        draft.add_link((host, "lo"), (switch, f"port{number}"), rate_bps=calibration.rate_bps, delay_ps=delay_ps)
    return draft.finish()
