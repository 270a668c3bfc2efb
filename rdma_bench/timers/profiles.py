"""Timer profile of an adapter: model, source, and confidence.

Documents contradict one another and the adapters: for T 20 and R 7 the standard's arithmetic gives 34 s, NCCL's user
guide 30 s, and a ConnectX-6 takes 60 s. `KNOWN_PROFILES` lists what others have published or we have tried; a profile
of your own adapter is a file of the same fields (`profile_files`).

Source: each profile names its own.
Left out: adaptive retransmission's tunable profiles (firmware of 2025 and later), and what differs from trial to trial.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from fabrictune.foundation.retransmission import CONNECTX_6, STANDARD, TimerModel

FittedName = Literal["floor_exponent", "interval_multiplier", "first_wait_multiplier", "extra_waits"]


@dataclass(frozen=True, kw_only=True)
class FittedInterval:
    """Between which values a fitted parameter of the model lies, as far as the trials can tell."""

    parameter: FittedName = field(metadata={"help": "of the timer model"})
    low: float = field(metadata={"help": "the least value that the trials allow"})
    high: float = field(metadata={"help": "the greatest"})


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
    timers: TimerModel = field(default=STANDARD, metadata={"help": "the model"})
    intervals: tuple[FittedInterval, ...] = field(default=(), metadata={"help": "how sure the fitted parameters are"})


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
KNOWN_PROFILES: Mapping[str, TimerProfile] = MappingProxyType({profile.name: profile for profile in _PUBLISHED})
