"""Alpha-beta cost of a collective: its rounds and buffers, and the time that follows from them.

    time = rounds * latency + buffers * bytes / rate

Rounds are messages that must follow one another; buffers are what must cross links one after another, as a share of the
collective's buffer: what the busiest NIC sends, and for a broadcast what its last link waits for besides. What stays
inside a host counts as rounds only. Each schedule's module counts its own (`all_reduce_cost` next to `all_reduce`).

Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), for the model; each algorithm's own source for its counts.
"""

from dataclasses import dataclass

from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Lower bound on rounds and buffers of one collective of a group."""

    rounds: int
    buffers: float

    def time_ps(self, num_bytes: int, rate_bps: float, latency_ps: float) -> float:
        """Return the time at a NIC's payload rate and one message's latency beyond its own bytes over that rate."""
        return self.rounds * latency_ps + self.buffers * num_bytes * BITS_PER_BYTE / rate_bps * PS_PER_S
