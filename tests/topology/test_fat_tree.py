"""The k-ary fat tree has the counts and the wiring of its paper."""

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree


@pytest.mark.parametrize("k", [2, 4, 6, 8, 16])
def test_counts_follow_from_k(k: int) -> None:
    """k^3/4 hosts, k^2/2 edge and as many aggregation switches, k^2/4 cores, 3 k^3/4 links."""
    fabric = build_fat_tree(FatTreeSpec(radix=k))
    assert np.bincount(fabric.node_tier_N).tolist() == [k**3 // 4, k**2 // 2, k**2 // 2, k**2 // 4]
    assert fabric.num_ports == 2 * 3 * k**3 // 4
    num_ports_N = np.bincount(fabric.port_node_P)
    assert set(num_ports_N[fabric.node_tier_N > 0].tolist()) == {k}


def test_host_c_has_nic_c() -> None:
    """Traffic patterns count NICs; tools of other simulators count hosts."""
    fabric = build_fat_tree(FatTreeSpec(radix=4))
    assert fabric.nic_host_C.tolist() == list(range(16))


def test_every_core_has_one_link_to_every_pod() -> None:
    """Aggregation switch a of each pod goes to the cores a k/2 to (a + 1) k/2 - 1."""
    fabric = build_fat_tree(FatTreeSpec(radix=4))
    core = fabric.node_name_N.index("core3")
    ports = np.nonzero(fabric.port_node_P == core)[0]
    assert [fabric.port_label(int(fabric.port_peer_P[port])) for port in ports] == [
        f"agg{pod}-1:up1" for pod in range(4)
    ]


def test_delay_follows_from_the_cable() -> None:
    """200 m at 5 ns a metre are 1 us."""
    fabric = build_fat_tree(FatTreeSpec(radix=2, cable_mm=200_000))
    assert set(fabric.port_delay_ps_P.tolist()) == {1_000_000}


@pytest.mark.parametrize("k", [0, 3, 102])
def test_an_impossible_radix_is_refused(k: int) -> None:
    """Half the ports go up, so k is even."""
    with pytest.raises(InputError, match=f"radix: {k}\n  allowed: an even number from 2 to 100"):
        FatTreeSpec(radix=k)
