"""What the retransmission timers must say: documented totals, and what was measured on an adapter."""

from collections.abc import Iterator
from functools import partial

from foundation.cases import Case, around
from rdma_bench.timers import CONNECTX_6, NOMINAL, RetransmissionSpec, TimerModel, predict_detection

# Timeout exponent, seconds until the queue pair gives up, with 7 retries.
_NOMINAL_ROWS = ((14, 0.470), (18, 7.516), (20, 30.06))
_CONNECTX_6_ROWS = ((14, 3.66), (18, 14.67), (20, 59.77))


def cases() -> tuple[Case, ...]:
    """Return the cases of the RDMA timers."""
    return (*_nominal(), *_connectx_6())


def _nominal() -> Iterator[Case]:
    for exponent, total_s in _NOMINAL_ROWS:
        yield Case(
            name=f"rdma_bench.nominal-give-up.t{exponent}",
            source="7 * 4.096 us * 2**T: NCCL user guide, NCCL_IB_TIMEOUT",
            unit="s",
            run=partial(_detection_s, exponent, NOMINAL),
            **around(total_s, 0.001),
        )


def _connectx_6() -> Iterator[Case]:
    for exponent, total_s in _CONNECTX_6_ROWS:
        yield Case(
            name=f"rdma_bench.connectx-6-give-up.t{exponent}",
            source=CONNECTX_6.source,
            unit="s",
            run=partial(_detection_s, exponent, CONNECTX_6),
            trust="C",
            **around(total_s, 0.01),
        )


def _detection_s(exponent: int, model: TimerModel) -> float:
    return predict_detection(RetransmissionSpec(timeout_exponent=exponent, retries=7), model).after_ns / 1e9
