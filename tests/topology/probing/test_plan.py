"""What may be sent, and what is refused before anything is."""

from ipaddress import IPv4Address

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.probing.plan import ProbePlan
from tests.topology.simulated_wire import TARGET


def test_the_most_that_can_be_sent_is_known_before() -> None:
    """Two targets x 64 ports x 8 hops x 3 attempts are 3,072 probes."""
    plan = ProbePlan(targets=(TARGET, TARGET + 1), rate_per_s=1000)
    assert (plan.max_probes, list(plan.source_ports)) == (3072, list(range(49152, 49216)))


def test_the_longest_it_can_take_is_known_before() -> None:
    """128 flows at 64 a second: 2 s, then 4 s and 8 s at half and quarter the pace, 1.5 s of waiting, 8 hops."""
    plan = ProbePlan(targets=(TARGET, TARGET + 1), rate_per_s=64)
    assert plan.max_duration_s == 8 * (2 + 4 + 8 + 1.5)


def test_repeats_take_a_timeout_at_least() -> None:
    """Ten repeats at 1,000 a second would be over in 20 ms; they are spread over the half second."""
    plan = ProbePlan(targets=(TARGET,), rate_per_s=1000)
    assert [plan.interval_s(attempt, 10) for attempt in range(3)] == [0.001, 0.05, 0.05]
    assert plan.interval_s(2, 1000) == 0.004


def test_all_mistakes_are_told_at_once() -> None:
    """Each with what is allowed."""
    with pytest.raises(InputError) as caught:
        ProbePlan(targets=(), rate_per_s=0, max_hops=33, attempts=7, timeout_ps=0, dscp=64, destination_qpn=1)
    assert str(caught.value) == (
        "rate_per_s: 0\n  allowed: 1 to 10,000\n"
        "max_hops: 33\n  allowed: 1 to 32\n"
        "attempts: 7\n  allowed: 1 to 6\n"
        "timeout_ps: 0 ps\n  allowed: 10 ms to 10 s\n"
        "dscp: 64\n  allowed: 0 to 63\n"
        "destination_qpn: 1\n  allowed: 2 to 16,777,215\n"
        "targets: none\n  allowed: one address or more"
    )


def test_the_number_of_probes_is_bounded() -> None:
    """16,384 ports x 8 hops x 3 attempts are twice what one probing may send."""
    with pytest.raises(InputError) as caught:
        ProbePlan(targets=(TARGET,), rate_per_s=10_000, num_source_ports=16_384)
    assert str(caught.value) == (
        "probes: 393,216 of them at most\n  allowed: 200,000 in one probing\n"
        "  next: ask for fewer targets, source ports, hops or attempts"
    )


def test_source_ports_end_at_65535() -> None:
    """From 65,500 on there are 36."""
    assert ProbePlan(targets=(TARGET,), rate_per_s=1, first_source_port=65_500, num_source_ports=36).source_ports
    with pytest.raises(InputError, match="source ports up to 65536"):
        ProbePlan(targets=(TARGET,), rate_per_s=1, first_source_port=65_500, num_source_ports=37)


@pytest.mark.parametrize("address", ["224.0.0.1", "0.0.0.0", "255.255.255.255", "240.0.0.1", "127.0.0.1"])
def test_a_target_is_one_other_host(address: str) -> None:
    """Groups, broadcasts and this machine are no paths through a fabric."""
    with pytest.raises(InputError, match=f"targets: {address}\n  allowed: the address of one other host"):
        ProbePlan(targets=(int(IPv4Address(address)),), rate_per_s=1)
