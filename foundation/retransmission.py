"""When a reliable queue pair sends again what nobody has acknowledged, and when it gives up.

A queue pair has a list of waits. When the first has passed without progress it goes back and sends again, then the
second runs, and so on; when the last has passed it fails. Progress begins the list anew.

The standard's list: the local-ack timeout of exponent T is 4.096 us * 2**T, and R retries make R + 1 such waits, the
last of which ends in failure. What a measured adapter does instead: T counts as a floor at least, a wait is twice the
nominal, and with adaptive retransmission the first retry is replaced by a series of early ones, taken as long as the
step from one to the next is no longer than the nominal timeout.

Source: InfiniBand Architecture Specification 1.4, volume 1, 9.7.6.1.3; unionxic/rdma-fault-characterization, ACK floor
study (ConnectX-6, firmware 20.43.4100): floor, multiplier, schedule, and R - 1 regular waits after the early ones.
"""

from collections.abc import Sequence
from itertools import pairwise, takewhile

UNIT_PS = 4_096_000
MAX_EXPONENT = 31
NEVER_PS = 2**62

# When the early retransmissions of a ConnectX-6 go out after the first sending. The first few vary from trial to trial
# (4 to 11 between 12 and 71 ms); these two stand for them.
CONNECTX_6_EARLY_MS = (12.0, 71.0, 138.0, 239.0, 440.0, 977.0, 1782.0, 3930.0, 8225.0)
CONNECTX_6_FLOOR = 16
CONNECTX_6_MULTIPLIER = 2
# How long a sender waits whose receiver was not ready, by the code in the refusal. Source: ibid., table 45.
RNR_TIMERS_MS = (
    *(655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92),
    *(2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52),
)
RNR_RETRIES_FOR_EVER = 7
_READING = 1e-3  # times are known to the millisecond, of seconds


def rnr_wait_ps(timer_code: int) -> int:
    """Return how long a sender waits that was refused with a timer code of 0 to 31."""
    return round(RNR_TIMERS_MS[timer_code] * 1e9)


def nominal_timeout_ps(exponent: int) -> int:
    """Return 4.096 us * 2**exponent; NEVER_PS for exponent 0, which turns the timer off."""
    return NEVER_PS if exponent == 0 else UNIT_PS << exponent


def retransmission_waits_ps(
    exponent: int,
    retries: int,
    *,
    floor_exponent: int = 0,
    interval_multiplier: int = 1,
    early_ms: Sequence[float] = (),
) -> tuple[int, ...]:
    """Return the waits one after another; the last ends in failure. Without `early_ms` none is adaptive."""
    nominal_ps = nominal_timeout_ps(0 if exponent == 0 else max(exponent, floor_exponent))
    if nominal_ps == NEVER_PS:
        return (NEVER_PS,)
    regular_ps = nominal_ps * interval_multiplier
    if not early_ms:
        return (regular_ps,) * (retries + 1)
    times_ps = [0, *(round(time * 1e9) for time in early_ms)]
    steps_ps = (later - earlier for earlier, later in pairwise(times_ps))
    early_ps = takewhile(lambda step_ps: step_ps <= nominal_ps * (1 + _READING), steps_ps)
    return (*early_ps, *(regular_ps,) * max(1, retries - 1))
