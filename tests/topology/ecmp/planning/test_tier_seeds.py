"""A seed for each tier ends polarization, and no try leaves the flows worse off."""

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.ecmp.collisions import find_collisions
from fabrictune.topology.ecmp.planning.source_ports import total_excess
from fabrictune.topology.ecmp.planning.tier_seeds import plan_tier_seeds, with_tier_seed
from fabrictune.topology.hashing import HashSpec, TierHash
from fabrictune.topology.placement import place
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.rank_pairs import neighbour_pairs
from fabrictune.topology.routing import build_network

FABRIC = build_clos(ClosSpec(num_hosts=64, hosts_per_tor_set=8, nics_per_host=8, tor_sets_per_pod=2))
LAYOUT = ParallelLayout(tp=8, dp=64)
NICS = place(LAYOUT, FABRIC, "random").nic_R
PAIRS = neighbour_pairs(LAYOUT, ("dp",))
QUEUE_PAIRS = make_queue_pairs(NICS[PAIRS.source_E], NICS[PAIRS.destination_E])


def test_tiers_that_hash_alike_get_seeds_of_their_own() -> None:
    """One seed for all switches polarizes; seeds for the tiers cut the excess to less than half."""
    alike = HashSpec(seed_per_switch=False)
    plan = plan_tier_seeds(FABRIC, QUEUE_PAIRS, alike)
    assert plan.is_changed
    assert plan.excess_bps[-1] < plan.excess_bps[0] / 2
    network = build_network(FABRIC, QUEUE_PAIRS, plan.hash_spec)
    report = find_collisions(FABRIC, QUEUE_PAIRS, network.epochs[0].port_QDH[:, 0])
    assert plan.excess_bps[-1] == total_excess(report)


def test_no_try_makes_it_worse_and_one_seed_gives_one_plan() -> None:
    """The excess after each try is at most that before it."""
    plans = [plan_tier_seeds(FABRIC, QUEUE_PAIRS, HashSpec(), seed=3) for _ in range(2)]
    assert list(plans[0].excess_bps) == sorted(plans[0].excess_bps, reverse=True)
    assert len(plans[0].excess_bps) == 1 + 3 * 8
    assert plans[0] == plans[1]


def test_a_tiers_other_settings_stay() -> None:
    """A tier with a function of its own keeps it; other tiers keep all they have."""
    spec = HashSpec(tiers=(TierHash(tier=2, function="crc32"), TierHash(tier=3, seed=9)))
    assert with_tier_seed(spec, 2, 7).tiers == (TierHash(tier=2, function="crc32", seed=7), TierHash(tier=3, seed=9))
    assert with_tier_seed(spec, 1, 7).tiers[0] == TierHash(tier=1, seed=7)
