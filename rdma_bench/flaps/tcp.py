"""Retransmission times of TCP: the analogue of a queue pair's timers that any machine has.

The first retransmission comes a retransmission timeout after the last sending, 200 ms and the round trip's variation on
a short path, and each following one after twice the time before it, at most two minutes. So what resumes after a flap
does so at 0.2, 0.6, 1.4, 3.0, 6.2 ... s, whichever comes first after the link: up to as long again as the flap itself.

Source: RFC 6298, 5.5 (doubling); Linux, include/net/tcp.h (TCP_RTO_MIN, TCP_RTO_MAX), and tcp(7), tcp_retries2.
Left out: probes of a lost tail, which come before the first timeout.
"""

import math
import re
from collections.abc import Iterator

MIN_TIMEOUT_NS = 200_000_000
MAX_TIMEOUT_NS = 120_000_000_000
RETRIES = 15  # tcp_retries2


def tcp_retransmissions_ns(timeout_ns: float = MIN_TIMEOUT_NS) -> Iterator[float]:
    """Yield when the retransmissions of a segment go out after the first sending, the first after `timeout_ns`."""
    time_ns = 0.0
    for _ in range(RETRIES):
        time_ns += timeout_ns
        yield time_ns
        timeout_ns = min(2 * timeout_ns, MAX_TIMEOUT_NS)


def tcp_resumes_ns(flap_ns: float, timeout_ns: float = MIN_TIMEOUT_NS) -> float:
    """Return when traffic resumes after a path has been down for so long; infinite if the connection ends first."""
    return next((time_ns for time_ns in tcp_retransmissions_ns(timeout_ns) if time_ns >= flap_ns), math.inf)


def timeouts_in(listing: str) -> list[float]:
    """Return the retransmission timeouts, in ns, of the connections that `ss -ti` lists."""
    return [float(text) * 1e6 for text in re.findall(r"\brto:(\d{1,9}(?:\.\d{1,6})?)", listing)]
