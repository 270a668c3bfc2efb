"""Timer profile of an adapter: model, source, and confidence.

Documents contradict one another and the adapters: for T 20 and R 7 the standard's arithmetic gives 34 s, NCCL's user
guide 30 s, and a ConnectX-6 takes 60 s. `KNOWN_PROFILES` lists what others have published or we have tried; a profile
of your own adapter is a file of the same fields (`profile_files`). `UNKNOWN_ADAPTERS` lists those of which nobody has
published when a queue pair gives up: they have no profile, and none stands in for them without saying so.

Source: each profile names its own.
Left out: adaptive retransmission's tunable profiles (firmware of 2025 and later), and what differs from trial to trial.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.retransmission import CONNECTX_6, STANDARD, TimerModel

FittedName = Literal["floor_exponent", "interval_multiplier", "first_wait_multiplier", "extra_waits"]


@dataclass(frozen=True, kw_only=True)
class FittedInterval:
    """Between which values a fitted parameter of the model lies, as far as the trials can tell."""

    parameter: FittedName = field(metadata={"help": "of the timer model"})
    low: float = field(metadata={"help": "the least value that the trials allow"})
    high: float = field(metadata={"help": "the greatest"})


@dataclass(frozen=True, kw_only=True)
class TriedSetting:
    """A timeout exponent and a retry count that were tried on a dead path, and when queue pairs gave up."""

    timeout: int = field(metadata={"help": "timeout exponent"})
    retries: int = field(metadata={"help": "retry count"})
    num_trials: int = field(metadata={"help": "number of trials"})
    least_ns: int = field(metadata={"help": "the shortest time until a queue pair gave up"})
    greatest_ns: int = field(metadata={"help": "the longest"})


@dataclass(frozen=True, kw_only=True)
class TimerProfile:
    """The timers of one kind of adapter."""

    name: str = field(metadata={"help": "of the profile"})
    source: str = field(metadata={"help": "document, study or command that the numbers come from"})
    confidence: Literal["documented", "measured"] = field(metadata={"help": "documented or measured"})
    device: str = field(default="", metadata={"help": "name or model of the adapter"})
    firmware: str = field(default="", metadata={"help": "its version"})
    caveat: str = field(default="", metadata={"help": "what the model does not say"})
    tried_exponents: tuple[int, ...] = field(default=(), metadata={"help": "timeout exponents that were tried"})
    tried: tuple[TriedSetting, ...] = field(default=(), metadata={"help": "settings that were tried, where listed"})
    timers: TimerModel = field(default=STANDARD, metadata={"help": "the model"})
    intervals: tuple[FittedInterval, ...] = field(default=(), metadata={"help": "how sure the fitted parameters are"})

    def tried_setting(self, timeout: int, retries: int) -> TriedSetting | None:
        """Return what was measured with these settings, None where nothing was."""
        return next((one for one in self.tried if (one.timeout, one.retries) == (timeout, retries)), None)

    def was_tried(self, timeout: int, retries: int) -> bool:
        """Return whether these settings were tried; a profile that lists none counts by timeout exponent."""
        if self.tried:
            return self.tried_setting(timeout, retries) is not None
        return timeout in self.tried_exponents


def _tried(*rows: tuple[int, int, int, float, float]) -> tuple[TriedSetting, ...]:
    """Return settings from rows of timeout, retries, trials, least and greatest milliseconds."""
    return tuple(
        TriedSetting(
            timeout=timeout,
            retries=retries,
            num_trials=num_trials,
            least_ns=round(least_ms * 1e6),
            greatest_ns=round(greatest_ms * 1e6),
        )
        for timeout, retries, num_trials, least_ms, greatest_ms in rows
    )


# Tables A1 and A2 of the study, with the trials out of sample for those that only these have.
_CONNECTX_6_TRIED = _tried(
    *((14, 7, 12, 3547.1, 3751.7), (16, 7, 5, 3661.6, 3738.7), (17, 7, 5, 7151.3, 7250.5)),
    *((18, 7, 5, 14667.6, 15037.6), (19, 7, 5, 28451.7, 29701.0), (20, 7, 5, 59053.5, 59766.3)),
    *((14, 1, 3, 440.5, 536.7), (14, 2, 3, 977.2, 1078.6), (14, 3, 3, 1347.5, 1514.4), (14, 4, 3, 2051.2, 2148.2)),
    *((14, 5, 3, 2587.9, 2679.7), (14, 6, 3, 3115.2, 3125.2), (10, 7, 6, 3659.0, 3685.7), (12, 7, 6, 3660.8, 3739.8)),
    *((15, 1, 6, 439.6, 534.4), (15, 3, 6, 1513.0, 1613.6), (15, 5, 6, 2587.1, 2675.7), (15, 7, 6, 3660.5, 3758.2)),
    *((17, 1, 6, 976.5, 1059.2), (17, 2, 6, 1781.5, 2143.5), (17, 3, 6, 2848.7, 2940.1), (17, 5, 6, 4996.1, 5101.7)),
)
# Table B.
_CONNECTX_6_NO_FLOOR_TRIED = _tried(
    *((8, 0, 5, 2.17, 2.34), (8, 1, 3, 3.10, 3.45), (8, 2, 3, 4.40, 4.58), (8, 3, 5, 5.16, 5.59)),
    *((8, 5, 3, 7.33, 7.35), (8, 7, 10, 9.33, 9.74), (10, 0, 5, 6.70, 8.75), (10, 3, 5, 19.46, 21.15)),
    *((10, 7, 5, 37.87, 38.10), (12, 0, 5, 29.12, 29.90), (12, 3, 5, 79.58, 80.04), (12, 7, 5, 146.65, 149.68)),
    *((14, 0, 5, 104.98, 119.36), (14, 3, 5, 306.10, 306.49), (14, 7, 10, 574.69, 604.34)),
    *((16, 7, 3, 2319.30, 2333.41), (17, 7, 3, 4571.05, 4735.71), (18, 7, 2, 9140.50, 9299.25)),
    *((20, 7, 2, 37587.71, 38290.33),),
)
_PUBLISHED = (
    TimerProfile(
        name="ibta",
        source="InfiniBand Architecture Specification 1.4, volume 1, 9.7.6.1.3: R + 1 waits of 4.096 us * 2**T",
        confidence="documented",
        caveat="an adapter may take up to 4 times as long: see ibta-slowest",
    ),
    TimerProfile(
        name="ibta-slowest",
        source="InfiniBand Architecture Specification 1.4, volume 1, 9.7.6.1.3: a wait of up to 4 times the timeout;"
        " NVIDIA's notes on adaptive retransmission say so of theirs",
        confidence="documented",
        timers=TimerModel(interval_multiplier=4.0),
    ),
    TimerProfile(
        name="nccl-guide",
        source="NCCL user guide, NCCL_IB_TIMEOUT: R waits of 4.096 us * 2**T in all",
        confidence="documented",
        timers=TimerModel(extra_waits=0),
    ),
    TimerProfile(
        name="connectx-6",
        source="unionxic/rdma-fault-characterization, harness/ack_timeout, tables A1 and A2: floor and adaptive"
        " retransmission as delivered; medians within 0.2 % of the model",
        confidence="measured",
        device="ConnectX-6 VPI",
        firmware="20.43.4100",
        caveat="the first fault of a process ends up to 2.1 s sooner at T 20, and 0.2 s sooner to 0.4 s later at T 14",
        tried_exponents=(10, 12, 14, 15, 16, 17, 18, 19, 20),
        tried=_CONNECTX_6_TRIED,
        timers=CONNECTX_6,
    ),
    TimerProfile(
        name="connectx-6-no-floor",
        source="unionxic/rdma-fault-characterization, harness/ack_timeout, table B: min_ack_timeout_limit_disabled set;"
        " medians within 4 % of the model for R 7",
        confidence="measured",
        device="ConnectX-6 VPI",
        firmware="20.43.4100",
        caveat="the first wait is 1.5 to 2.2 of the others; up to 20 % off for R 0 at T 8",
        tried_exponents=(8, 10, 12, 14, 16, 17, 18, 20),
        tried=_CONNECTX_6_NO_FLOOR_TRIED,
        timers=TimerModel(first_wait_multiplier=1.7),
    ),
    TimerProfile(
        name="bnxt",
        source="Linux, drivers/infiniband/hw/bnxt_re: no timer of its own is documented, so the standard's",
        confidence="documented",
        device="Broadcom NetXtreme-E",
        caveat="the driver reports a local ACK delay of 16 (268 ms), which the connection manager adds to T; NCCL does"
        " not use it",
    ),
    TimerProfile(
        name="soft-roce",
        source="trials of rdma_rxe on Linux 6.1 in a virtual machine: R + 1 waits, 1.00 to 1.09 times this",
        confidence="measured",
        device="rdma_rxe",
        firmware="Linux 6.1",
        caveat="R 7 goes on without end; under traffic the first wait is up to one wait shorter; the floor is a jiffy",
        tried_exponents=(14, 15, 16, 17, 18),
        timers=TimerModel(endless_retries=7),
    ),
)
_TUNABLE = (
    "NVIDIA, Adaptive Retransmission: Parameters Control (2025): the timeouts of its default profile are not published;"
    " of a profile that is set, the total is R times T's timeout, or a number in the register ROCE_ACCL"
)
UNKNOWN_ADAPTERS: Mapping[str, str] = MappingProxyType({"connectx-7": _TUNABLE, "bluefield-3": _TUNABLE})
DEFAULT_PROFILE = "connectx-6"  # where nobody names one
KNOWN_PROFILES: Mapping[str, TimerProfile] = MappingProxyType({profile.name: profile for profile in _PUBLISHED})


def unknown_adapter(name: str, *, where: str) -> Mistake | None:
    """Return the mistake of naming an adapter whose timers nobody has published, None for any other name."""
    source = UNKNOWN_ADAPTERS.get(name.lower())
    if source is None:
        return None
    return Mistake(
        where=where,
        found=f"{name}: timers unknown ({source})",
        allowed=", ".join(KNOWN_PROFILES),
        next_step="measure yours with `fabrictune rdma timers measure`, and name its file; ibta and ibta-slowest are"
        " the standard's limits",
    )
