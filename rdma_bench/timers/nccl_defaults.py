"""NCCL's default timeout and retry count, by version.

Source: NVIDIA/nccl, src/transport/net_ib.cc over its history, and the user guide's NCCL_IB_TIMEOUT: 14 before 2.14, 18
up to 2.23.3, 20 from 2.23.4 on; NCCL_IB_RETRY_CNT has been 7 throughout.
"""

import re

from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec

NEWEST = "2.30"  # read in the source
TIMEOUT_SINCE: tuple[tuple[tuple[int, ...], int], ...] = (((2, 23, 4), 20), ((2, 14, 0), 18), ((), 14))
RETRIES = 7


def possible_defaults() -> tuple[RetransmissionSpec, ...]:
    """Return the default settings of all versions, the shortest timeout first."""
    return tuple(RetransmissionSpec(timeout_exponent=exponent, retries=RETRIES) for _, exponent in TIMEOUT_SINCE[::-1])


def nccl_default(version: str, *, where: str = "version") -> RetransmissionSpec:
    """Return the default settings of a version such as `2.21.5+cuda12.4`; raises InputError for what is none."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d.])", version)
    if match is None:
        allowed = "a version of NCCL, such as 2.23.4"
        raise InputError(Mistake(where=where, found=quote(version), allowed=allowed))
    numbers = tuple(int(number or 0) for number in match.groups())
    exponent = next(exponent for since, exponent in TIMEOUT_SINCE if numbers >= since)
    return RetransmissionSpec(timeout_exponent=exponent, retries=RETRIES)
