"""Fabrics that several tests of this room use."""

from pathlib import Path

import pytest

from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.fabric import Fabric


@pytest.fixture(scope="session")
def golden() -> Path:
    """Return the folder of files this project wrote for its importers."""
    return Path(__file__).parents[1] / "golden" / "topology"


@pytest.fixture(scope="session")
def small_clos() -> Fabric:
    """Return 128 GPUs in MegaScale's shape: 16 hosts of 8 rails, 4 hosts a set, 32 ToRs with 2 uplinks each."""
    return build_clos(ClosSpec(num_hosts=16, hosts_per_tor_set=4, tiers=2))


@pytest.fixture(scope="session")
def fat_tree() -> Fabric:
    """Return the fat tree of 4-port switches: 16 hosts."""
    return build_fat_tree(FatTreeSpec(radix=4))


@pytest.fixture(scope="session")
def two_tors() -> Fabric:
    """Return two ToRs of 8 NICs each that share 8 aggregation switches, all links of one rate."""
    return build_clos(
        ClosSpec(
            num_hosts=16,
            hosts_per_tor_set=8,
            nics_per_host=1,
            tiers=2,
            switch_radix=16,
            uplink_rate_bps=200_000_000_000,
            downlink_split=1,
        )
    )
