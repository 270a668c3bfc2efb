"""Faults that are planted in simulated jobs, drawn from a seed, each with what has to be found."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.planted_stragglers.jobs import MESSAGE_BYTES, MS, Disturbance, JobSize
from fabrictune.observability.stragglers.diagnosis import Cause

STEP_NS = 200 * MS
PACKET_BYTES = 4096
IN_FLIGHT_PACKETS = 122  # 400 Gbps for 10 us


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fault: its disturbance, and its cause and rank; no rank for one of the whole job."""

    cause: Cause
    rank: int | None
    disturbance: Disturbance


Plant = Callable[[JobSize, np.random.Generator], Planted]


def slow_rank(size: JobSize, random: np.random.Generator) -> Planted:
    """Return a rank whose passes take 6 to 25 % longer."""
    faults, replica, stage = _at(size, random)
    faults.work_SDP[:, replica, stage] = 1 + random.uniform(0.06, 0.25)
    return Planted(cause="slow work", rank=_rank(size, replica, stage), disturbance=faults)


def slow_link(size: JobSize, random: np.random.Generator) -> Planted:
    """Return a rank whose transfers take 2 to 6 times as long."""
    faults, replica, stage = _at(size, random)
    faults.link_DP[replica, stage] = random.uniform(2, 6)
    return Planted(cause="slow link", rank=_rank(size, replica, stage), disturbance=faults)


def lossy_link(size: JobSize, random: np.random.Generator) -> Planted:
    """Return a rank whose transfers take longer by chance, by 1.5 to 4 times on average, as go-back-N does."""
    faults, replica, stage = _at(size, random)
    faults.loss_DP[replica, stage] = random.uniform(1.5, 4)
    return Planted(cause="slow link", rank=_rank(size, replica, stage), disturbance=faults)


def lossy_nic(size: JobSize, random: np.random.Generator) -> Planted:
    """Return a rank whose NIC loses 0.5 to 2 % of packets: with go-back-N, each loss sends what is in flight again."""
    faults, replica, stage = _at(size, random)
    loss = random.uniform(0.005, 0.02)
    faults.loss_DP[replica, stage] = loss * IN_FLIGHT_PACKETS
    faults.losses_DP[replica, stage] = loss * MESSAGE_BYTES / PACKET_BYTES
    return Planted(cause="slow link", rank=_rank(size, replica, stage), disturbance=faults)


def collections(size: JobSize, random: np.random.Generator) -> Planted:
    """Return collections of garbage of 30 to 120 ms, half a rank to two a step, each rank at its own moments."""
    faults = Disturbance.none(size)
    chance = random.uniform(0.5, 2) / (size.dp * size.pp)
    is_stalled = random.random(faults.collection_SDP.shape) < chance
    is_stalled[1::3, random.integers(size.dp), random.integers(size.pp)] = True
    faults.collection_SDP[is_stalled] = random.uniform(30, 120, is_stalled.sum()) * MS
    return Planted(cause="garbage collection", rank=None, disturbance=faults)


def starvation(size: JobSize, random: np.random.Generator) -> Planted:
    """Return a rank that waits for data for 25 to 60 % of a step, in half of the steps and more."""
    faults, replica, stage = _at(size, random)
    is_starved = random.random(size.num_steps) < random.uniform(0.5, 1.0)
    is_starved[2::3] = True
    faults.loading_SDP[is_starved, replica, stage] = random.uniform(0.25, 0.6) * STEP_NS
    return Planted(cause="data loading", rank=_rank(size, replica, stage), disturbance=faults)


def wrong_clock(size: JobSize, random: np.random.Generator) -> Planted:
    """Return a rank whose clock is 4 to 50 ms ahead or behind."""
    faults, replica, stage = _at(size, random)
    faults.clock_DP[replica, stage] = random.choice([-1, 1]) * random.uniform(4, 50) * MS
    return Planted(cause="wrong clock", rank=_rank(size, replica, stage), disturbance=faults)


FAULTS: dict[str, Plant] = {
    "slow rank": slow_rank,
    "slow link": slow_link,
    "lossy link": lossy_link,
    "lossy NIC": lossy_nic,
    "garbage collection": collections,
    "loader starvation": starvation,
    "clock offset": wrong_clock,
}


def _at(size: JobSize, random: np.random.Generator) -> tuple[Disturbance, int, int]:
    return Disturbance.none(size), int(random.integers(size.dp)), int(random.integers(size.pp))


def _rank(size: JobSize, replica: int, stage: int) -> int:
    return stage * size.dp + replica
