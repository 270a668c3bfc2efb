"""How far runs at max-min shares were off in makespan, by the committed cross-check with the packet engine.

A factor is the makespan in packets over that at shares. Fitted to: benchmarks/fluid_and_packets.csv, all its runs of a
law, in two classes: those in which some transfer was held, and those in which none was. `low` and `high` are the least
and the greatest factor, between which a further run like these lies with 1 - 2 / (runs + 1): 92 % of 24, 97 % of 72.
Runs of 16 to 128 hosts whose messages have 3 to 2,000 packets; a law that is not here was not run.

Source: Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical Statistics 1941.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The factors of makespans between which some runs lay."""

    low: float
    high: float
    num_runs: int


AGREEMENTS: Mapping[tuple[str, bool], Agreement] = {  # by law, and whether transfers were held
    ("none", False): Agreement(low=0.998, high=1.0, num_runs=24),
    ("none", True): Agreement(low=0.989, high=1.174, num_runs=73),
    ("swift", False): Agreement(low=1.0, high=1.112, num_runs=24),
    ("swift", True): Agreement(low=0.989, high=1.12, num_runs=73),
    ("hybrid", False): Agreement(low=1.0, high=1.112, num_runs=24),
    ("hybrid", True): Agreement(low=0.989, high=1.233, num_runs=72),
    ("hpcc", False): Agreement(low=0.998, high=1.052, num_runs=24),
    ("hpcc", True): Agreement(low=0.997, high=2.138, num_runs=72),
    ("dcqcn_firmware", False): Agreement(low=0.998, high=1.001, num_runs=26),
    ("dcqcn_firmware", True): Agreement(low=0.989, high=2.395, num_runs=77),
    ("dcqcn", False): Agreement(low=0.998, high=1.0, num_runs=24),
    ("dcqcn", True): Agreement(low=0.989, high=4.605, num_runs=72),
}


def agreement_of(law: str, *, is_held: bool) -> Agreement | None:
    """Return the agreement of runs under a law; None of one that the cross-check does not have."""
    return AGREEMENTS.get((law, is_held))
