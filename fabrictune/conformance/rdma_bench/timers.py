"""Retransmission timers: documented totals, measurements on an adapter, and a fit to these."""

from collections.abc import Iterator
from functools import partial

from fabrictune.foundation.cases import Case, around
from fabrictune.rdma_bench.measurement.timer_fit import fit_timers
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec, predict_retransmission
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES
from fabrictune.rdma_bench.timers.trials import FOR_GOOD, RETRIES_EXCEEDED, TimerTrial

# Timeout exponent, seconds until the queue pair gives up, with 7 retries.
_GUIDE_ROWS = ((14, 0.470), (18, 7.516), (20, 30.06), (22, 120.3))
# Timeout exponent, retries, milliseconds until the queue pair gives up: the study's medians.
_CONNECTX_6_ROWS = (
    *((14, 7, 3_661.8), (16, 7, 3_661.8), (17, 7, 7_151.7), (18, 7, 14_667.8), (19, 7, 29_700.8), (20, 7, 59_766.3)),
    *((14, 1, 440.6), (14, 2, 977.6), (14, 3, 1_514.3), (14, 4, 2_051.4), (14, 5, 2_588.2), (14, 6, 3_124.8)),
    *((10, 7, 3_661.0), (15, 5, 2_587.1), (17, 1, 976.8), (17, 2, 1_781.8), (17, 3, 2_855.6), (17, 5, 5_003.3)),
)
_NO_FLOOR_ROWS = (
    *((8, 7, 9.49), (10, 7, 37.91), (12, 7, 147.04), (14, 3, 306.29), (14, 7, 574.9)),
    *((16, 7, 2_319.7), (17, 7, 4_735.6), (18, 7, 9_219.9), (20, 7, 37_939.0)),
)


# Of these, what a profile is fitted to, and what it must then say of the others.
_FITTED = ((14, 2), (14, 4), (14, 6), (17, 2), (17, 3), (17, 5))
_FORETOLD = ((10, 7), (14, 7), (15, 5), (16, 7), (17, 7), (18, 7))


def cases() -> tuple[Case, ...]:
    """Return the cases of the RDMA timers."""
    measured = (("connectx-6", _CONNECTX_6_ROWS, 0.01), ("connectx-6-no-floor", _NO_FLOOR_ROWS, 0.05))
    studies = (case for profile, rows, fraction in measured for case in _study(profile, rows, fraction))
    return (*_guide(), *studies, *_fit())


def _guide() -> Iterator[Case]:
    for exponent, total_s in _GUIDE_ROWS:
        yield Case(
            name=f"rdma_bench.nccl-guide-gives-up.t{exponent}",
            source="7 * 4.096 us * 2**T: NCCL user guide, NCCL_IB_TIMEOUT",
            unit="s",
            run=partial(_gives_up_s, "nccl-guide", exponent, 7),
            **around(total_s, 0.001),
        )


def _study(profile: str, rows: tuple[tuple[int, int, float], ...], fraction: float) -> Iterator[Case]:
    for exponent, retries, total_ms in rows:
        yield Case(
            name=f"rdma_bench.{profile}-gives-up.t{exponent}-r{retries}",
            source=KNOWN_PROFILES[profile].source,
            unit="s",
            run=partial(_gives_up_s, profile, exponent, retries),
            trust="C",
            **around(total_ms / 1e3, fraction),
        )


def _fit() -> Iterator[Case]:
    for exponent, retries, total_ms in _CONNECTX_6_ROWS:
        if (exponent, retries) in _FORETOLD:
            yield Case(
                name=f"rdma_bench.fit-foretells.t{exponent}-r{retries}",
                source=f"{KNOWN_PROFILES['connectx-6'].source}; by a model fitted to six other settings of it",
                unit="s",
                run=partial(_foretold_s, exponent, retries),
                trust="C",
                **around(total_ms / 1e3, 0.01),
            )


def _gives_up_s(profile: str, exponent: int, retries: int) -> float:
    spec = RetransmissionSpec(timeout_exponent=exponent, retries=retries)
    return predict_retransmission(spec, KNOWN_PROFILES[profile]).gives_up_ns / 1e9


def _foretold_s(exponent: int, retries: int) -> float:
    trials = [
        TimerTrial(
            spec=RetransmissionSpec(timeout_exponent=tried_exponent, retries=tried_retries),
            cut_ns=FOR_GOOD,
            status=RETRIES_EXCEEDED,
            after_ns=round(total_ms * 1e6),
        )
        for tried_exponent, tried_retries, total_ms in _CONNECTX_6_ROWS
        if (tried_exponent, tried_retries) in _FITTED
    ]
    return sum(fit_timers(trials).timers.waits_ps(exponent, retries)) / 1e12
