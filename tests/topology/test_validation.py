"""Checks of a fabric: each way to miscable it is found and named, and what was built to plan has no finding."""

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fabrictune.foundation.checks import Result
from fabrictune.foundation.finding_rules.fabric import UNEQUAL_RATE, UNEQUAL_UPLINKS
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.records import Severity
from fabrictune.topology import validation
from fabrictune.topology.builders import BUILDERS
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import NO_RAIL, Fabric
from fabrictune.topology.validation import validate_fabric

GBPS = 10**9


def found(fabric: Fabric) -> list[tuple[str, str, str, str]]:
    """Return rule, entity, expected and actual of every finding."""
    return [(one.id, one.entity, one.expected, one.actual) for one in validate_fabric(fabric).findings]


def port_of(fabric: Fabric, label: str) -> int:
    """Return the port of a label."""
    return next(port for port in range(fabric.num_ports) if fabric.port_label(port) == label)


def without_link(fabric: Fabric, label: str) -> Fabric:
    """Return the fabric without the link between two switches that leaves through a port."""
    port = port_of(fabric, label)
    kept = np.array([row for row in range(fabric.num_ports) if row not in (port, fabric.port_peer_P[port])])
    new_row = np.full(fabric.num_ports, -1)
    new_row[kept] = np.arange(len(kept))
    return replace(
        fabric,
        port_name_P=tuple(fabric.port_name_P[row] for row in kept),
        port_peer_P=new_row[fabric.port_peer_P[kept]],
        **{
            name: getattr(fabric, name)[kept]
            for name in vars(fabric)
            if name.endswith("_P") and "name" not in name and "peer" not in name
        },
    )


def recabled(fabric: Fabric, first: str, second: str) -> Fabric:
    """Return the fabric with the far ends of two links exchanged."""
    ports = [port_of(fabric, first), port_of(fabric, second)]
    far = fabric.port_peer_P[ports]
    peer_P = fabric.port_peer_P.copy()
    peer_P[ports], peer_P[far] = far[::-1], ports[::-1]
    return replace(fabric, port_peer_P=peer_P)


@pytest.mark.parametrize("oversubscription", [1, 2])
def test_a_fabric_built_to_plan_has_no_finding(oversubscription: int) -> None:
    """Three tiers, eight rails, split downlinks; every third of its counts is unequal to the next."""
    spec = ClosSpec(num_hosts=64, hosts_per_tor_set=8, oversubscription=oversubscription)
    assert validate_fabric(build_clos(spec)).findings == ()


@pytest.mark.parametrize("name", sorted(BUILDERS.keys() - {"clos"}))  # whose spec has no size of its own
def test_published_fabrics_have_no_finding(name: str) -> None:
    """Dual ToRs, planes, rails without spine, uneven counts of cores: what differs by design differs everywhere."""
    builder = BUILDERS[name]
    assert validate_fabric(builder.build(builder.spec())).findings == ()


def test_two_rails_that_changed_places(small_clos: Fabric) -> None:
    """Three of four hosts of the set are cabled alike: the fourth's two NICs are named, with where each belongs."""
    assert found(recabled(small_clos, "host1:nic2", "host1:nic5")) == [
        ("fabric.rail-miscabled", "host1:nic2", "tor0-2, as on host0, host2, host3", "rail 2 is cabled to tor0-5"),
        ("fabric.rail-miscabled", "host1:nic5", "tor0-5, as on host0, host2, host3", "rail 5 is cabled to tor0-2"),
    ]


def test_rails_are_known_by_port_names_where_no_file_tells_them(small_clos: Fabric) -> None:
    """As for every imported fabric whose format knows no rails."""
    nameless = replace(small_clos, nic_rail_C=np.full(small_clos.num_nics, NO_RAIL))
    (first, _) = found(recabled(nameless, "host1:nic2", "host1:nic5"))
    assert first[2:] == ("tor0-2, as on host0, host2, host3", "port nic2 is cabled to tor0-5")


def test_a_nic_in_another_tor_set(small_clos: Fabric) -> None:
    """host0 and host4 exchanged the cables of rail 7: each is compared with its own set."""
    miscabled = found(recabled(small_clos, "host0:nic7", "host4:nic7"))
    assert [(entity, actual) for _, entity, _, actual in miscabled] == [
        ("host0:nic7", "rail 7 is cabled to tor1-7"),
        ("host4:nic7", "rail 7 is cabled to tor0-7"),
    ]


def test_a_missing_uplink(small_clos: Fabric) -> None:
    """31 of 32 ToRs have two uplinks, and what the ToR still reaches is shown; the aggregation switches are all top."""
    cut = without_link(small_clos, "tor0-0:up1")
    (finding,) = validate_fabric(cut).findings
    assert (finding.id, finding.entity, finding.severity) == ("fabric.unequal-uplinks", "tor0-0", Severity.WARNING)
    assert finding.expected == "equal uplinks within a tier"
    assert finding.actual == (
        "1 uplink (400 Gbps); 31 of 32 switches of tier 1 have 2 uplinks to 2 switches, 1 each (800 Gbps)"
    )
    assert finding.evidence == ("uplinks to: agg0-0",)


def test_uplinks_that_are_spread_otherwise() -> None:
    """Three ToRs with two uplinks: two have one to each switch above, the third both to one."""
    draft = FabricDraft("spread")
    spines = [draft.add_switch(f"spine{number}", tier=2) for number in range(2)]
    for number in range(3):
        leaf, host = draft.add_switch(f"leaf{number}", tier=1), draft.add_host(f"host{number}")
        draft.add_link((host, "nic0"), (leaf, "down0"), rate_bps=GBPS, delay_ps=0)
        for uplink in range(2):
            spine = spines[0 if number == 2 else uplink]
            draft.add_link((leaf, f"up{uplink}"), (spine, f"down{number}{uplink}"), rate_bps=GBPS, delay_ps=0)
    (finding,) = validate_fabric(draft.finish()).findings
    assert (finding.entity, finding.actual) == (
        "leaf2",
        "2 uplinks (2 Gbps); 2 of 3 switches of tier 1 have 2 uplinks to 2 switches, 1 each (2 Gbps)",
    )


def test_a_link_at_another_rate(small_clos: Fabric) -> None:
    """One uplink of 64 came up at 100 Gbps: the link is named, and the ToR whose capacity it lowers."""
    rate_bps_P = small_clos.port_rate_bps_P.copy()
    port = port_of(small_clos, "tor3-7:up0")
    rate_bps_P[[port, small_clos.port_peer_P[port]]] = 100 * GBPS
    first, second = found(replace(small_clos, port_rate_bps_P=rate_bps_P))
    assert first == (
        "fabric.unequal-rate",
        small_clos.link_label(port),
        "400 Gbps, as on 63 of 64 links between tier 1 and tier 2",
        "100 Gbps",
    )
    assert second[:2] == ("fabric.unequal-uplinks", "tor3-7")


def test_a_link_that_skips_a_tier(fat_tree: Fabric) -> None:
    """host0's NIC stands in an aggregation port: neighbouring tiers are what 46 of the 48 links join."""
    odd = found(recabled(fat_tree, "host0:nic0", "tor1:up0"))
    assert [entity_and_rest for rule, *entity_and_rest in odd if rule == "fabric.odd-levels"] == [
        ["tor0:down0 -> tor1:up0", "neighbouring tiers, as for 46 of 48 links", "link between tier 1 and tier 1"],
        ["host0:nic0 -> agg0-0:down1", "neighbouring tiers, as for 46 of 48 links", "link between tier 0 and tier 2"],
    ]


def test_isolated_nodes_and_parts() -> None:
    """Two racks without a link between, the smaller of which is named, and a host without any."""
    draft = FabricDraft("apart")
    for number, num_hosts in enumerate((3, 2)):
        leaf = draft.add_switch(f"leaf{number}", tier=1)
        for host in range(num_hosts):
            node = draft.add_host(f"host{number}{host}")
            draft.add_link((node, "nic0"), (leaf, f"down{host}"), rate_bps=GBPS, delay_ps=0)
    draft.add_host("spare")
    assert found(draft.finish()) == [
        ("fabric.isolated-node", "spare", "at least one link", "no link"),
        (
            "fabric.partition",
            "leaf1",
            "a path to the other 5 nodes",
            "no path to the rest of the fabric from 3 nodes: leaf1, host10, host11",
        ),
    ]


def test_unknown_tiers_never_pass() -> None:
    """Without hosts no tier is known, so nothing about uplinks can be said."""
    draft = FabricDraft("switches")
    first, second = draft.add_switch("a"), draft.add_switch("b")
    draft.add_link((first, "1"), (second, "1"), rate_bps=GBPS, delay_ps=0)
    ((rule, _, _, actual),) = found(draft.finish())
    assert (rule, actual) == ("fabric.unknown-tier", "2 switches have no tier, so uplink checks are skipped: a, b")


def test_two_that_differ_have_no_majority() -> None:
    """One host with NICs on rails 0 and 1, one the other way round: nobody knows which is wrong."""
    draft = FabricDraft("even")
    leaves = [draft.add_switch(f"leaf{number}", tier=1) for number in range(2)]
    for number in range(2):
        host = draft.add_host(f"host{number}")
        for rail in range(2):
            end = (leaves[(rail + number) % 2], f"down{number}")
            draft.add_link((host, f"nic{rail}"), end, rate_bps=GBPS, delay_ps=0, rail=rail)
    assert validate_fabric(draft.finish()).findings == ()


def test_every_finding_of_one_kind_is_there() -> None:
    """A hundred spares: each by name, and counted; a terminal shows the first twenty beside that number."""
    draft = FabricDraft("spares")
    for number in range(100):
        draft.add_host(f"host{number}")
    report = validate_fabric(draft.finish())
    assert [finding.entity for finding in report.findings] == [f"host{number}" for number in range(100)]
    assert report.checks[0].num_found == 100


def test_a_leaf_without_an_uplink_comes_before_hosts() -> None:
    """Thirty of a hundred hosts have one link fewer, and one leaf of five: the leaf is named first."""
    draft = FabricDraft("shared")
    spines = [draft.add_switch(f"spine{number}", tier=2) for number in range(2)]
    leaves = [draft.add_switch(f"leaf{number}", tier=1) for number in range(5)]
    for row, leaf in enumerate(leaves):
        for number, spine in enumerate(spines[: 1 if row == 4 else 2]):
            draft.add_link((leaf, f"up{number}"), (spine, f"down{row}"), rate_bps=GBPS, delay_ps=0)
    for number in range(100):
        host = draft.add_host(f"host{number}")
        for link in range(1 if number < 30 else 2):
            end = (leaves[(number + link) % 5], f"down{number}")
            draft.add_link((host, f"nic{link}"), end, rate_bps=GBPS, delay_ps=0)
    uplinks = [one.entity for one in validate_fabric(draft.finish()).findings if one.id == "fabric.unequal-uplinks"]
    assert uplinks[0] == "leaf4"
    assert len(uplinks) == 31


def test_without_a_majority_a_check_has_not_passed() -> None:
    """Two leaves with one and two uplinks: nobody knows which is right."""
    draft = FabricDraft("two")
    spine, leaves = (
        draft.add_switch("spine", tier=2),
        [draft.add_switch(f"leaf{number}", tier=1) for number in range(2)],
    )
    for port, leaf in enumerate((leaves[0], leaves[1], leaves[1])):
        draft.add_link((leaf, f"up{port}"), (spine, f"down{port}"), rate_bps=GBPS, delay_ps=0)
    report = validate_fabric(draft.finish())
    check = {one.rule: one for one in report.checks}["fabric.unequal-uplinks"]
    assert (check.result, check.reason) == (Result.NOT_RUN, "no majority among 2 switches of tier 1")


def test_each_check_says_what_it_looked_at() -> None:
    """A fabric without findings says how many nodes, links and NICs were compared."""
    report = validate_fabric(build_clos(ClosSpec(num_hosts=8, hosts_per_tor_set=4, nics_per_host=2, tiers=2)))
    assert [check.result for check in report.checks] == [Result.PASSED] * 7
    assert report.checks[-1].subject == "16 NICs"


def test_a_site_may_ask_for_a_larger_majority() -> None:
    """Three of four hosts run at 400 Gbps: more than half of them, but not 80 %."""
    draft = FabricDraft("mixed")
    leaf = draft.add_switch("leaf", tier=1)
    for host, rate_bps in enumerate([400 * GBPS] * 3 + [100 * GBPS]):
        draft.add_link((draft.add_host(f"h{host}"), "nic0"), (leaf, f"down{host}"), rate_bps=rate_bps, delay_ps=0)
    fabric = draft.finish()
    assert [finding.id for finding in validate_fabric(fabric).findings] == [UNEQUAL_RATE.id, UNEQUAL_UPLINKS.id]
    site = RuleSettings(thresholds={UNEQUAL_RATE.id: {"majority": 0.8}, UNEQUAL_UPLINKS.id: {"majority": 0.8}})
    report = validate_fabric(fabric, site)
    assert report.findings == ()
    assert [check.reason for check in report.checks if check.rule == UNEQUAL_RATE.id] == [
        "no 80 % majority among 4 links between tier 0 and tier 1"
    ]


def test_peers_are_put_together_once(monkeypatch: pytest.MonkeyPatch, small_clos: Fabric) -> None:
    """Several checks compare the same links and uplinks, and ask for them again where they have no majority."""
    counts = Counter[str]()
    for name in ("_links", "_uplinks", "_profiles"):
        original = getattr(validation, name)
        count = partial(lambda name, original, *given: (counts.update([name]), original(*given))[1], name, original)
        monkeypatch.setattr(validation, name, count)
    validate_fabric(small_clos)
    assert counts == {"_links": 1, "_uplinks": 1, "_profiles": 1}
