"""When TCP sends again, with the arithmetic."""

import math
from itertools import islice

import pytest

from fabrictune.rdma_bench.flaps.tcp import tcp_resumes_ns, tcp_retransmissions_ns, timeouts_in

MS = 1_000_000


def test_each_wait_is_twice_the_one_before() -> None:
    """200 + 400 + 800 + 1600 ms: at 0.2, 0.6, 1.4 and 3.0 s; from 208 ms on at 0.208, 0.624 and 1.456 s."""
    assert list(islice(tcp_retransmissions_ns(), 4)) == [200 * MS, 600 * MS, 1400 * MS, 3000 * MS]
    assert list(islice(tcp_retransmissions_ns(208 * MS), 3)) == [208 * MS, 624 * MS, 1456 * MS]


def test_a_wait_is_two_minutes_at_most_and_the_last_ends_it() -> None:
    """tcp(7): with 15 retries a connection lives 924.6 s: 200 ms * (2**10 - 1) = 204.6 s, and six waits of 120 s.

    The last of these six ends in failure, so that the last sending is at 804.6 s.
    """
    *_, last_ns = tcp_retransmissions_ns()
    assert last_ns == 804_600 * MS
    assert tcp_resumes_ns(last_ns) == last_ns
    assert tcp_resumes_ns(last_ns + 1) == math.inf


@pytest.mark.parametrize(("flap_ms", "resumes_ms"), [(1, 200), (200, 200), (400, 600), (1000, 1400), (2000, 3000)])
def test_traffic_resumes_with_the_first_after_the_flap(flap_ms: int, resumes_ms: int) -> None:
    """As long again as the flap, at most."""
    assert tcp_resumes_ns(flap_ms * MS) == resumes_ms * MS


def test_timeouts_are_read_from_ss() -> None:
    """One with a fraction; `rtt` and `minrto` are other things."""
    listing = "ESTAB 0 0 192.0.2.1:4 192.0.2.2:5 cubic rto:208 rtt:7.1/3 ato:40\nESTAB 0 0 a b rto:201.5 minrtt:0.1\n"
    assert timeouts_in(listing) == [208 * MS, 201.5 * MS]
    assert timeouts_in("") == []
