"""Headroom against sums done by hand."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.netsim.headroom import pfc_headroom_bytes, pfc_response_ps


def test_headroom_is_the_sum_of_its_parts() -> None:
    """100 Gb/s, 40 m: 5,000 B on two cables, 25,216 B in 394 quanta of response, two frames and a pause frame."""
    headroom = pfc_headroom_bytes(rate_bps=100 * 10**9, delay_ps=200_000, full_frame_bytes=4178)
    assert headroom == 5_000 + 25_216 + 2 * 4178 + 84


def test_a_faster_response_needs_less() -> None:
    """Without response time only cables and frames are left."""
    headroom = pfc_headroom_bytes(rate_bps=100 * 10**9, delay_ps=200_000, full_frame_bytes=4178, response_ps=0)
    assert headroom == 5_000 + 2 * 4178 + 84


@pytest.mark.parametrize(
    ("rate_gbps", "response_ps"),
    [
        (100, 2_017_280),  # 394 quanta of 5.12 ns
        (400, 1_158_400),  # 905 of 1.28 ns
        (200, 2_316_800),  # 400G's 905 quanta, 2.56 ns each
        (800, 1_158_400),  # no faster bound is listed: 400G's time
    ],
)
def test_response_follows_the_quanta_of_the_rate(rate_gbps: int, response_ps: int) -> None:
    """A quantum is 512 bit times."""
    assert pfc_response_ps(rate_gbps * 10**9) == response_ps


def test_no_link_has_no_headroom() -> None:
    """A rate of zero is a mistake of the caller's file, not a division by zero."""
    with pytest.raises(InputError, match="0 bps over 10 ps"):
        pfc_headroom_bytes(rate_bps=0, delay_ps=10, full_frame_bytes=1000)
