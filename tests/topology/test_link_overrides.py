"""Rates and cables of an imported fabric can be corrected, by tier or in all, and a note says what they replaced."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.scenario.fabrics import make_fabric
from fabrictune.scenario.files import parse_scenario
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers import import_fabric
from fabrictune.topology.link_overrides import LinkOverride, override_links

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
SCENARIO = """name: x
fabric: {file: %s, %%s}
traffic: {workload: permutation, message: 1 KB}
"""


@pytest.fixture
def clos() -> Fabric:
    """Return two ToRs with two hosts each, and two aggregation switches: 4 + 4 links."""
    return build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=1, tiers=2, uplinks_per_tor=2))


def test_every_link_gets_the_rate(clos: Fabric) -> None:
    """The note says what it replaces, and how often where that was not one value."""
    changed = override_links(clos, [LinkOverride(rate_bps=400 * 10**9)])
    assert set(changed.port_rate_bps_P.tolist()) == {400 * 10**9}
    assert changed.notes[-1].startswith("rate of 8 links overridden: 400 Gbps in place of ")


def test_tiers_narrow_an_override_and_the_later_one_counts(clos: Fabric) -> None:
    """Hosts are tier 0: their 4 links get 200 Gbps after all 8 got 800."""
    overrides = [LinkOverride(rate_bps=800 * 10**9), LinkOverride(tiers=(1, 0), rate_bps=200 * 10**9)]
    changed = override_links(clos, overrides)
    is_host_link_P = (changed.port_nic_P >= 0) | (changed.port_nic_P[changed.port_peer_P] >= 0)
    assert set(changed.port_rate_bps_P[is_host_link_P].tolist()) == {200 * 10**9}
    assert set(changed.port_rate_bps_P[~is_host_link_P].tolist()) == {800 * 10**9}
    assert changed.notes[-1] == "rate of 4 links between tiers 0 and 1 overridden: 200 Gbps in place of 800 Gbps"


def test_a_cable_is_five_nanoseconds_a_metre(clos: Fabric) -> None:
    """30 m are 150 ns; a delay is taken as it is. Nothing else of the fabric changes."""
    changed = override_links(clos, [LinkOverride(cable_mm=30_000)])
    assert set(changed.port_delay_ps_P.tolist()) == {150_000}
    assert np.array_equal(changed.port_rate_bps_P, clos.port_rate_bps_P)
    assert set(override_links(clos, [LinkOverride(delay_ps=7)]).port_delay_ps_P.tolist()) == {7}


def test_without_overrides_a_fabric_is_what_it_was(clos: Fabric) -> None:
    """Bytes and notes."""
    assert override_links(clos, []).notes == clos.notes


def test_tiers_without_a_link_are_refused_with_those_there_are(clos: Fabric) -> None:
    """A mistyped tier would otherwise change nothing, in silence."""
    with pytest.raises(InputError) as caught:
        override_links(clos, [LinkOverride(tiers=(0, 3), rate_bps=1)], where="fabric.links")
    assert str(caught.value) == "fabric.links: no link between tiers 0 and 3\n  allowed: [0, 1], [1, 2]"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("rate: 4 Pbps", "fabric.rate: '4 Pbps': 'Pbps' is no unit of rate"),
        ("rate: 400 Tbps", "fabric.rate: 400 Tbps\n  allowed: above 0, up to 100 Tbps"),
        ("cable: 3 m, delay: 5 us", "fabric.delay: a cable and a delay\n  allowed: one of the two"),
        ("cable: 999999 km", "fabric.cable: 5 s\n  allowed: up to 1 s of delay"),
        ("links: [{tiers: [0], rate: 4G}]", "fabric.links[0].tiers: [0]\n  allowed: two tiers, 0 for hosts: [0, 1]"),
        ("links: [{tiers: [0, 1]}]", "fabric.links[0].rate: no value\n  allowed: a rate, a cable or a delay"),
    ],
)
def test_values_that_no_link_has_are_refused_at_their_key(keys: str, message: str) -> None:
    """With the line of the file."""
    with pytest.raises(InputError) as caught:
        parse_scenario(SCENARIO % (GOLDEN / "lab.clab.yml") % keys, Path("x.yaml"))
    assert str(caught.value).startswith(f"x.yaml:2: {message}")


def test_a_scenario_overrides_its_file() -> None:
    """Both spellings of a rate; the file's own notes stay before those of the overrides."""
    text = SCENARIO % (GOLDEN / "lab.clab.yml") % "rate: 400G, links: [{tiers: [0, 1], rate: 200 Gbps, cable: 3 m}]"
    fabric = make_fabric(parse_scenario(text, Path("x.yaml")).fabric)
    assert set(fabric.port_rate_bps_P.tolist()) == {200 * 10**9, 400 * 10**9}
    assert fabric.notes[:-3] == import_fabric([GOLDEN / "lab.clab.yml"]).notes
    assert fabric.notes[-3:] == (
        "rate of 8 links overridden: 400 Gbps in place of 100 Gbps (6), 400 Gbps (2)",
        "rate of 4 links between tiers 0 and 1 overridden: 200 Gbps in place of 400 Gbps",
        "delay of 4 links between tiers 0 and 1 overridden: 15 ns in place of 50 ns",
    )
