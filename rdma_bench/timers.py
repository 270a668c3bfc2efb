"""How long an RDMA queue pair goes on trying before it gives up, by three accounts.

An application sets two numbers: a timeout exponent T (NCCL_IB_TIMEOUT, 20) and a retry count R (NCCL_IB_RETRY_CNT, 7).
The standard makes one wait 4.096 us * 2**T, and adapter documents make the whole R such waits: 30 s. A measured adapter
differs: a floor under T, a wait of twice the nominal, and a first stage of early retransmissions that costs one retry;
for T 20 and R 7, 60 s until IBV_WC_RETRY_EXC_ERR ends the job. A link flap shorter than that is survived.

Source: each model names its own.
Left out: when each early retransmission goes out, and so when traffic resumes after a flap; the tunable profiles of
adaptive retransmission; adapters with the floor turned off.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from foundation.errors import InputError, Mistake

IBTA_UNIT_NS = 4096
MAX_EXPONENT = 31
MAX_RETRIES = 7

Confidence = Literal["documented", "measured", "extrapolated"]


@dataclass(frozen=True, kw_only=True)
class RetransmissionSpec:
    """What an application asks of its queue pairs; the defaults are NCCL's since 2.23.4."""

    timeout_exponent: int = 20  # 0: wait for ever
    retries: int = 7

    def __post_init__(self) -> None:
        _check_range("timeout_exponent", self.timeout_exponent, MAX_EXPONENT)
        _check_range("retries", self.retries, MAX_RETRIES)


@dataclass(frozen=True, kw_only=True)
class TimerModel:
    """What an adapter makes of it: one wait per retry and `extra_waits`, less what an early stage saves."""

    name: str
    source: str
    floor_exponent: int = 0  # a smaller exponent counts as this one
    interval_multiplier: int = 1  # a wait, in nominal timeouts
    extra_waits: int = 0
    early_ns_at_floor: int = 0  # by how much the early stage is shorter than the wait it replaces
    early_ns_above_floor: int = 0
    fewest_retries: int = 0  # below it the model says nothing
    endless_retries: int | None = None  # a count that stands for no limit
    measured_exponents: range | None = None  # where a device was tried; None for a document


@dataclass(frozen=True, kw_only=True)
class Detection:
    """When a dead path ends the queue pair."""

    after_ns: float  # math.inf: never
    interval_ns: float  # between two regular retransmissions
    confidence: Confidence
    source: str


NOMINAL = TimerModel(
    name="nominal",
    source="InfiniBand Architecture Specification, volume 1, 9.7.6.1.3: a wait of 4.096 us * 2**T, up to 4 times that;"
    " NCCL user guide, NCCL_IB_TIMEOUT: R waits",
)
CONNECTX_6 = TimerModel(
    name="connectx-6",
    source="unionxic/rdma-fault-characterization, ACK floor study: ConnectX-6 VPI, firmware 20.43.4100, RoCEv2,"
    " adaptive retransmission and floor on as delivered; 42 of 42 trials within 0.9 ms of the model",
    floor_exponent=16,
    interval_multiplier=2,
    early_ns_at_floor=96_000_000,
    early_ns_above_floor=364_000_000,
    fewest_retries=1,
    measured_exponents=range(14, 21),
)
SOFT_ROCE = TimerModel(
    name="soft-roce",
    source="trials of rdma_rxe on Linux 6.1 in a virtual machine, idle queue pair: R + 1 waits, 1.00 to 1.09 times this"
    " from T 14 on; R 7 goes on without end",
    extra_waits=1,
    endless_retries=7,
    measured_exponents=range(14, 19),
)
TIMER_MODELS: Mapping[str, TimerModel] = MappingProxyType(
    {model.name: model for model in (NOMINAL, CONNECTX_6, SOFT_ROCE)}
)


def nominal_timeout_ns(exponent: int) -> float:
    """Return 4.096 us * 2**exponent; infinite for exponent 0, which turns the timer off."""
    return math.inf if exponent == 0 else IBTA_UNIT_NS * 2**exponent


def predict_detection(spec: RetransmissionSpec, model: TimerModel) -> Detection:
    """Return when a path that stays dead ends the queue pair; raises InputError where the model says nothing."""
    if spec.retries < model.fewest_retries:
        raise InputError(
            Mistake(
                where="retries", found=str(spec.retries), allowed=f"{model.fewest_retries} or more, for {model.name}"
            )
        )
    interval_ns = model.interval_multiplier * nominal_timeout_ns(_effective_exponent(spec, model))
    is_at_floor = spec.timeout_exponent <= model.floor_exponent
    early_ns = model.early_ns_at_floor if is_at_floor else model.early_ns_above_floor
    is_endless = spec.retries == model.endless_retries
    return Detection(
        after_ns=math.inf if is_endless else (spec.retries + model.extra_waits) * interval_ns - early_ns,
        interval_ns=interval_ns,
        confidence=_confidence(spec, model),
        source=model.source,
    )


def survives_flap(flap_ns: int, spec: RetransmissionSpec, model: TimerModel) -> bool:
    """Return whether a queue pair with data in flight outlives a link that is down for `flap_ns`."""
    return flap_ns < predict_detection(spec, model).after_ns


def _effective_exponent(spec: RetransmissionSpec, model: TimerModel) -> int:
    return spec.timeout_exponent and max(spec.timeout_exponent, model.floor_exponent)


def _confidence(spec: RetransmissionSpec, model: TimerModel) -> Confidence:
    if model.measured_exponents is None:
        return "documented"
    return "measured" if spec.timeout_exponent in model.measured_exponents else "extrapolated"


def _check_range(where: str, value: int, high: int) -> None:
    if not 0 <= value <= high:
        raise InputError(Mistake(where=where, found=str(value), allowed=f"0 to {high}"))
