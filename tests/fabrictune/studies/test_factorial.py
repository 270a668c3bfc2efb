"""A factorial experiment on a small fabric: MegaScale's three means, in which direction each works."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.composition import compose_fabric
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.factorial import run_factorial
from fabrictune.topology.fabric import Fabric

SCENARIOS = Path(__file__).parents[3] / "scenarios"
# The shape of the bundled scenario, a twelfth of the servers: 128 servers, 16 a ToR set, 8 ToRs a pod.
SMALL = {
    "fabric.num_hosts": 128,
    "fabric.aggregations_per_pod": 8,
    "fabric.num_cores": 32,
    "traffic.layout": {"tp": 8, "pp": 2, "dp": 64},
    "factors": [
        {
            "name": "split",
            "low": {"fabric.switch_radix": 32, "fabric.uplink_rate": "200 Gbps", "fabric.downlink_split": 1},
            "high": {"fabric.switch_radix": 16, "fabric.uplink_rate": "400 Gbps", "fabric.downlink_split": 2},
        },
        {
            "name": "rails",
            "low": {"fabric.hosts_per_tor_set": 2, "fabric.tors_per_set": 1, "fabric.tor_sets_per_pod": 8},
            "high": {"fabric.hosts_per_tor_set": 16, "fabric.tors_per_set": 8, "fabric.tor_sets_per_pod": 1},
        },
        {
            "name": "placement",
            "low": {"traffic.placement": "random"},
            "high": {"traffic.placement": "contiguous"},
        },
    ],
}


@pytest.fixture(scope="module")
def bundled() -> Scenario:
    """Return the scenario on 12,288 GPUs."""
    return load_scenario(SCENARIOS / "megascale-three-means.yaml")


@pytest.fixture(scope="module")
def record(bundled: Scenario) -> RunRecord:
    """Return the experiment on the small fabric."""
    return run_factorial(override(bundled, SMALL, origin="small"), num_seeds=20)


def effect(record: RunRecord, name: str, metric: str) -> float:
    """Return one effect on one figure."""
    table = record.tables["effects"]
    (row,) = np.nonzero((table["effect"] == name) & (table["metric"] == metric))[0]
    return float(table["value"][row])


def test_all_combinations_are_measured(record: RunRecord) -> None:
    """Eight designs, named by what they have; seven effects on each of six figures."""
    assert record.tables["designs"]["design"].tolist() == [
        "none",
        "placement",
        "rails",
        "rails + placement",
        "split",
        "split + placement",
        "split + rails",
        "split + rails + placement",
    ]
    assert len(record.tables["effects"]["effect"]) == 7 * 6


def test_each_mean_works_in_its_direction(record: RunRecord) -> None:
    """Splitting and placement let more through; what placement has won, splitting cannot win again."""
    assert effect(record, "split", "throughput_fraction") > 0.03
    assert effect(record, "placement", "throughput_fraction") > 0.2
    assert effect(record, "split x placement", "throughput_fraction") < 0
    assert effect(record, "rails", "slowest_fraction") > 0


def test_effects_are_differences_of_the_designs(record: RunRecord) -> None:
    """The effect of a factor is the mean of the four designs with it less that of the four without."""
    designs = record.tables["designs"]
    has = np.array(["placement" in name for name in designs["design"]])
    throughput = designs["throughput_fraction"]
    by_hand = throughput[has].mean() - throughput[~has].mean()
    assert effect(record, "placement", "throughput_fraction") == pytest.approx(by_hand)


def uplink_bps_by_tier(fabric: Fabric) -> dict[int, int]:
    """Return the capacity from each tier to the one above."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    is_up_P = fabric.node_tier_N[fabric.port_node_P[fabric.port_peer_P]] == tier_P + 1
    return {tier: int(fabric.port_rate_bps_P[is_up_P & (tier_P == tier)].sum()) for tier in range(3)}


def test_every_design_of_the_bundled_scenario_has_the_same_switches_and_capacity(bundled: Scenario) -> None:
    """1,536 servers, 192 + 192 + 96 switches and 12,288 x 200 Gbps between any two tiers: the comparison is fair."""
    split, rails, _ = bundled.factors
    for split_level in (split.low, split.high):
        for rails_level in (rails.low, rails.high):
            fabric = compose_fabric(override(bundled, {**split_level, **rails_level}, origin="design"))
            assert np.bincount(fabric.node_tier_N).tolist() == [1536, 192, 192, 96]
            assert set(uplink_bps_by_tier(fabric).values()) == {12_288 * 200_000_000_000}


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([], "no factors\n  allowed: 1 to 6 factors of different names\n"),
        ([{"name": "a", "low": {}, "high": {}}] * 2, "factors a, a\n  allowed: 1 to 6 factors of different names\n"),
    ],
)
def test_factors_that_cannot_be_crossed_are_refused(bundled: Scenario, factors: list[object], message: str) -> None:
    """None at all, or two of one name."""
    with pytest.raises(InputError) as raised:
        run_factorial(override(bundled, {"factors": factors}, origin="--set"), num_seeds=2)
    assert message in str(raised.value)
