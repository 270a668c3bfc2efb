"""Adapters' timers in the engine: it fails and resumes when the model says, and as was measured."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from fabrictune.foundation.cases import Case, around
from fabrictune.foundation.settings.binding import bind
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES
from fabrictune.scenario.schema import Scenario
from fabrictune.validate.timers import TimerRow, simulate_timers

_FLAP_NS = 100_000_000
_EXPONENTS, _COUNTS = (14, 17, 20), (2, 6)
# Seconds until a ConnectX-6 gave up with 7 retries, by timeout: medians of the study.
_MEASURED_S = ((14, 3.66), (18, 14.67), (20, 59.77))
_TWO_HOSTS = {
    "name": "two-hosts",
    "fabric": {
        "builder": "clos",
        "num_hosts": 2,
        "hosts_per_tor_set": 2,
        "nics_per_host": 1,
        "tiers": 2,
        "uplinks_per_tor": 1,
    },
    "traffic": {"workload": "incast", "senders": 1, "message": "1 MB"},
    "law": "none",
    "faults": [{"fault": "flap", "link": "host0:nic0", "at": "2 us", "down": "1 us"}],
}


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for profile in ("ibta", "connectx-6", "connectx-6-no-floor"):
        for exponent in _EXPONENTS:
            for retries in _COUNTS:
                for what in ("gives-up", "stall"):
                    yield Case(
                        name=f"validate.timers-{what}.{profile}.t{exponent}-r{retries}",
                        source="rdma_bench/timers/prediction.py: the sum of all waits; the first retransmission after"
                        " a flap of 100 ms",
                        unit="times the model",
                        **around(1.0, 0.05),
                        run=partial(_times_the_model, profile, exponent, retries, what),
                    )
    for exponent, measured_s in _MEASURED_S:
        yield Case(
            name=f"validate.timers-gives-up.as-measured.t{exponent}-r7",
            source=KNOWN_PROFILES["connectx-6"].source,
            unit="s",
            trust="C",
            **around(measured_s, 0.01),
            run=partial(_simulated_s, exponent),
        )


def _times_the_model(profile: str, exponent: int, retries: int, what: str) -> float:
    row = _row(profile, exponent, retries)
    if what == "gives-up":
        return row.simulated_gives_up_ns / row.prediction.gives_up_ns
    return row.simulated_stall_ns / row.model_stall_ns


def _simulated_s(exponent: int) -> float:
    return _row("connectx-6", exponent, 7).simulated_gives_up_ns / 1e9


@cache
def _row(profile: str, exponent: int, retries: int) -> TimerRow:
    scenario = bind(Scenario, _TWO_HOSTS, folder=Path())
    spec = RetransmissionSpec(timeout_exponent=exponent, retries=retries)
    (row,) = simulate_timers(scenario, [profile], [spec], flap_ns=_FLAP_NS)
    return row
