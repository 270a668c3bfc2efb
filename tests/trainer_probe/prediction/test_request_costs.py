"""Durations of requests against arithmetic on the profile's figures."""

from dataclasses import replace

import pytest

from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.hardware.files import bundled_profile
from fabrictune.trainer_probe.prediction.program import ProgramRequest
from fabrictune.trainer_probe.prediction.request_costs import expected_s, is_inside_host

BUNDLED = bundled_profile("a100")
A100 = replace(  # hosts of 8
    BUNDLED,
    nvlink=replace(BUNDLED.nvlink, collective_bytes_per_s=231e9, latency_ps=29 * 10**6),
    network=replace(
        BUNDLED.network, nic_rate_bps=2e11, achieved_fraction=0.9, latency_ps=10 * 10**6, message_ps=2 * 10**6
    ),
)
GB = 10**9


def request(kind: Operation, members: tuple[int, ...], num_bytes: int = GB, peer: int = UNKNOWN) -> ProgramRequest:
    return ProgramRequest(kind=kind, axis="dp", num_bytes=num_bytes, members=members, rank=members[0], peer=peer)


@pytest.mark.parametrize(
    ("kind", "members", "expected"),
    [
        (Operation.ALL_GATHER, tuple(range(8)), 29e-6 + 7 / 8 / 231),
        (Operation.ALL_REDUCE, tuple(range(8)), 2 * (29e-6 + 7 / 8 / 231)),
        (Operation.REDUCE_SCATTER, tuple(range(0, 32, 8)), 3 * 10e-6 + 3 / 4 / 22.5),
        (Operation.ALL_GATHER, tuple(range(16)), 10e-6 + 29e-6 + 15 / 16 / 180),
        (Operation.ALL_TO_ALL, tuple(range(16)), 10e-6 + 29e-6 + 8 / 16 / 22.5),
        (Operation.ALL_GATHER, (3,), 0.0),
    ],
)
def test_a_collective_takes_latencies_and_bytes(kind: Operation, members: tuple[int, ...], expected: float) -> None:
    """Of 1 GB: over NVLink, over one NIC of each of four hosts, and over eight NICs of each of two."""
    assert expected_s(request(kind, members), A100) == pytest.approx(expected, rel=1e-9)


def test_a_message_takes_the_way_to_its_peer() -> None:
    """Over NVLink inside the host, else over a NIC; 2 us at its sender."""
    inside, outside = (request(Operation.SEND, (0, 1, 8), peer=peer) for peer in (1, 8))
    assert expected_s(inside, A100) == pytest.approx(2e-6 + 1 / 231, rel=1e-9)
    assert expected_s(outside, A100) == pytest.approx(12e-6 + 1 / 22.5, rel=1e-9)


def test_a_group_of_one_host_is_inside() -> None:
    """Ranks 7 and 8 are on two hosts."""
    assert is_inside_host(request(Operation.BARRIER, (0, 7)), A100)
    assert not is_inside_host(request(Operation.BARRIER, (7, 8)), A100)
