"""Variants of a scenario in one table: settings, failures, and the reasons for refusing some."""

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.schema import Scenario, WhatIf
from fabrictune.studies.whatif import compare, variants_from

RINGS = """
name: rings
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 4, nics_per_host: 8, tiers: 2}
traffic: {workload: neighbours, layout: {tp: 8, dp: 16}, placement: interleaved}
whatif:
  - {name: placed well, change: {traffic.placement: contiguous}}
  - {name: unsplit, change: {fabric.uplink_rate: 200 Gbps, fabric.downlink_split: 1}}
  - {name: sixteen queue pairs, change: {traffic.expansion.qps_per_connection: 16}}
  - {name: one switch down, fail: [agg0-0]}
"""
SEEDS = 20


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return eight rings of sixteen hosts, badly placed."""
    path = tmp_path_factory.mktemp("whatif") / "rings.yaml"
    path.write_text(RINGS)
    return load_scenario(path)


@pytest.fixture(scope="module")
def record(scenario: Scenario) -> RunRecord:
    """Return the comparison of the scenario's own variants."""
    return compare(scenario, num_seeds=SEEDS)


def figure(record: RunRecord, variant: str, name: str) -> float:
    """Return one figure of one variant."""
    variants = record.tables["variants"]
    return float(variants[name][variants["variant"].tolist().index(variant)])


def test_the_scenario_as_it_is_comes_first(record: RunRecord) -> None:
    """Then its own variants in their order."""
    assert record.tables["variants"]["variant"].tolist() == [
        "as it is",
        "placed well",
        "unsplit",
        "sixteen queue pairs",
        "one switch down",
    ]
    assert set(record.tables["variants"]["num_seeds"].tolist()) == {SEEDS}


def test_the_figures_are_ordered_as_the_means_work(record: RunRecord) -> None:
    """Placement helps most, many queue pairs help, unsplit uplinks hurt.

    Without one of two aggregation switches every ToR has one uplink of 400G for four flows of 200G: half, whatever the
    seed.
    """
    share = {name: figure(record, name, "throughput_fraction") for name in record.tables["variants"]["variant"]}
    assert share["placed well"] > 0.99
    assert share["placed well"] > share["sixteen queue pairs"] > 0.9 > share["as it is"] > share["unsplit"]
    assert share["one switch down"] == pytest.approx(0.5)
    assert figure(record, "one switch down", "worst_load_fraction_p99") == 2.0


def test_rates_and_shares_tell_the_same(record: RunRecord) -> None:
    """A NIC of 200 Gbps sends its share of it."""
    for name in record.tables["variants"]["variant"]:
        share = figure(record, name, "throughput_fraction")
        assert figure(record, name, "mean_nic_bps") == pytest.approx(share * 200e9)


def test_intervals_hold_their_figures(record: RunRecord) -> None:
    """Low, value, high, in that order, for every estimate."""
    variants = record.tables["variants"]
    for name in (name.removesuffix("_low") for name in variants if name.endswith("_low")):
        assert (variants[f"{name}_low"] <= variants[name]).all()
        assert (variants[name] <= variants[f"{name}_high"]).all()


def test_a_comparison_repeats(scenario: Scenario, record: RunRecord) -> None:
    """The same seeds give the same table."""
    again = compare(scenario, num_seeds=SEEDS)
    for name, column in record.tables["variants"].items():
        assert np.array_equal(column, again.tables["variants"][name]), name


def test_a_random_placement_is_drawn_anew_for_every_seed(scenario: Scenario) -> None:
    """With one placement for all, only the hash would vary; its spread would be less than with both."""
    spread = {}
    for placement_seed in (0, 1):
        more = [WhatIf(name="r", change={"traffic.placement": "random", "traffic.placement_seed": placement_seed})]
        found = compare(scenario, more, num_seeds=SEEDS)
        spread[placement_seed] = figure(found, "r", "throughput_fraction")
    assert spread[0] != spread[1]
    assert abs(spread[0] - spread[1]) < 0.03  # 19 of 20 placements are the same


def test_variants_of_the_command_line() -> None:
    """One option a variant, its settings parted by semicolons; failures likewise."""
    assert variants_from(["fabric.uplink_rate=200 Gbps; fabric.downlink_split=1"], ["agg0-0; tor0:up1"]) == [
        WhatIf(
            name="fabric.uplink_rate=200 Gbps; fabric.downlink_split=1",
            change={"fabric.uplink_rate": "200 Gbps", "fabric.downlink_split": 1},
        ),
        WhatIf(name="without agg0-0; tor0:up1", fail=("agg0-0", "tor0:up1")),
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (WhatIf(name="unsplit"), "rings.yaml:5: whatif: two variants called 'unsplit'\n  allowed: each name once"),
        (WhatIf(name="x", fail=("agg0-9",)), "x: fail: unknown node 'agg0-9'\n  did you mean 'agg0-1'?\n"),
        (
            WhatIf(name="x", fail=("tor0-3",)),
            "x: queue pair 3: no path from host0:nic3 to host4:nic3\n  allowed: two NICs joined by switches\n"
            "  next: fail only what leaves every NIC another way",
        ),
        (WhatIf(name="x", change={"traffic.layout": 3}), "what if 'x': traffic.layout: 3 where a mapping"),
    ],
)
def test_a_variant_that_cannot_be_is_refused(scenario: Scenario, more: WhatIf, message: str) -> None:
    """With the variant's name, and before or after the others are measured alike."""
    with pytest.raises(InputError) as raised:
        compare(scenario, [more], num_seeds=2)
    assert message in str(raised.value)
