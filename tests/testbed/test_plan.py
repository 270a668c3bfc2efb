"""What a testbed can be built of, and the rates that it gets."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.errors import FabricError
from fabrictune.testbed.plan import host_names, management_address, plan_testbed
from fabrictune.topology.builders.clos import ClosSpec, build_clos

FABRIC = build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=1, tiers=2, downlink_split=1))


def test_all_links_are_scaled_by_one_factor() -> None:
    """200 Gbps to hosts become 50 Mbps, so 400 Gbps between switches become 100 Mbps."""
    planned = plan_testbed(FABRIC, rate_bps=50_000_000)
    assert np.array_equal(planned.port_rate_bps_P * 4_000, FABRIC.port_rate_bps_P)
    assert planned.notes == ("testbed: 200 Gbps are 50 Mbps here, all links by the same factor",)
    assert host_names(planned) == ["host0", "host1", "host2", "host3"]
    assert [management_address(number) for number in (0, 299)] == ["198.18.0.1", "198.18.1.44"]


def test_every_name_and_address_that_cannot_be_is_told_at_once() -> None:
    """An interface has at most 15 characters; the management network is not for NICs."""
    names = ("long-name-of-a-port", "lo", *FABRIC.port_name_P[2:])
    nic_ipv4_C = np.array([198 * 2**24 + 18 * 2**16 + 9, *FABRIC.nic_ipv4_C[1:]])
    faulty = replace(FABRIC, port_name_P=names, nic_ipv4_C=nic_ipv4_C)
    with pytest.raises(FabricError) as caught:
        plan_testbed(faulty)
    assert [mistake.found for mistake in caught.value.mistakes] == [
        "a name no interface can have",
        "a name no interface can have",
        "address 198.18.0.9",
    ]


def test_a_nic_of_two_ports_and_a_large_fabric_are_refused() -> None:
    """A namespace has no bond, and hundreds of them are no miniature."""
    two = build_clos(ClosSpec(num_hosts=2, hosts_per_tor_set=2, nics_per_host=1, ports_per_nic=2, tiers=2))
    with pytest.raises(FabricError, match=r"host0:nic0p0: a NIC of 2 ports\n  allowed: NICs of one port"):
        plan_testbed(two)
    large = build_clos(ClosSpec(num_hosts=512, hosts_per_tor_set=64, nics_per_host=1, tiers=2))
    with pytest.raises(FabricError, match=r"nodes\n  allowed: up to 256\n  next: take a smaller fabric"):
        plan_testbed(large)
